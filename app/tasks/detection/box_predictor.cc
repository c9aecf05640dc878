// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/detection/box_predictor.h"

#include <map>

#include "app/tasks/detection/found_boxes.h"
#include "app/tasks/detection/joined_boxes.h"
#include "mxtrain/base/format.h"

namespace mxtrain::tasks {
namespace {

const std::vector<std::string> kColumns = {"class", "score", "left", "top", "right", "bottom"};

class BoxPrediction final : public HeadPrediction {
 public:
  // `rows`: the numbers that the boxes are of; none of tiles.
  BoxPrediction(std::span<const float> rows, BoxesInImage found, const ClassNames& names)
      : rows_(rows), names_(names), found_(std::move(found)) {}

  std::span<const float> numbers() const override { return rows_; }
  std::string Text() const override { return Counts("  "); }
  std::vector<std::string> Cells() const override { return CellRows().front(); }
  std::vector<std::vector<std::string>> CellRows() const override {
    std::vector<std::vector<std::string>> rows;
    for (const FoundBox& box : found_.boxes)
      rows.push_back({names_[box.label], format("{:.6f}", box.score), Place(box.left),
                      Place(box.top), Place(box.right), Place(box.bottom)});
    if (rows.empty()) rows.emplace_back(kColumns.size());
    return rows;
  }
  Json ToJson() const override {
    Json list = Json::array();
    for (const FoundBox& box : found_.boxes) {
      list.push_back({{"class", names_[box.label]},
                      {"index", box.label},
                      {"score", box.score},
                      {"box", {box.left, box.top, box.right, box.bottom}}});
    }
    return {{"boxes", list}, {"height", found_.height}, {"width", found_.width}};
  }
  std::string Caption() const override { return Counts(", "); }
  void DrawOn(io::Image* image) const override { DrawFound(found_.boxes, names_, image); }
  const BoxesInImage* Boxes() const override { return &found_; }

 private:
  static std::string Place(double at) { return format("{:.2f}", at); }
  // "12 RBC  1 WBC", in the order of the classes.
  std::string Counts(const char* separator) const {
    std::map<int, int64_t> counts;
    for (const FoundBox& box : found_.boxes) ++counts[box.label];
    std::string text;
    for (const auto& [label, count] : counts)
      text += format("{}{} {}", text.empty() ? "" : separator, count, names_[label]);
    return text.empty() ? "-" : text;
  }

  const std::span<const float> rows_;
  const ClassNames& names_;
  const BoxesInImage found_;
};

BoxesInImage WithoutLower(double least_score, const io::ImageOrigin& file,
                          std::vector<FoundBox> boxes) {
  std::erase_if(boxes, [least_score](const FoundBox& box) { return box.score < least_score; });
  return {file.height(), file.width(), std::move(boxes)};
}

class BoxesOfTiles final : public JoinedPrediction {
 public:
  BoxesOfTiles(double least_score, const ClassNames& names)
      : least_score_(least_score), names_(names) {}

  void Add(std::span<const float> values, const Example& example) override {
    file_ = example.origin();
    boxes_.Add(*example.tile(), BoxesInFile(values, example));
  }
  std::unique_ptr<HeadPrediction> Take() override {
    return std::make_unique<BoxPrediction>(
        std::span<const float>(), WithoutLower(least_score_, file_, boxes_.Take()), names_);
  }

 private:
  const double least_score_;
  const ClassNames& names_;
  io::ImageOrigin file_;
  JoinedBoxes boxes_;
};

class BoxPredictor final : public Predictor {
 public:
  BoxPredictor(int64_t width, double least_score, std::vector<std::string> names)
      : width_(width), least_score_(least_score), classes_(std::move(names)), names_(classes_) {}

  Abilities abilities() const override {
    return {.threshold = true, .placed = true, .tiles = true};
  }
  int64_t width() const override { return width_; }
  std::vector<std::string> Columns() const override { return kColumns; }
  std::unique_ptr<HeadPrediction> Predict(std::span<const float> values,
                                          const Example& example) const override {
    return std::make_unique<BoxPrediction>(
        values, WithoutLower(least_score_, example.origin(), BoxesInFile(values, example)), names_);
  }
  std::unique_ptr<JoinedPrediction> Join() const override {
    return std::make_unique<BoxesOfTiles>(least_score_, names_);
  }
  const std::vector<std::string>* BoxClasses() const override { return &classes_; }
  std::string HowNotFinite() const override { return "boxes that are not finite are skipped"; }

 private:
  const int64_t width_;
  const double least_score_;
  const std::vector<std::string> classes_;
  const ClassNames names_;
};

}  // namespace

std::unique_ptr<Predictor> NewBoxPredictor(int64_t width, double least_score,
                                           std::vector<std::string> names) {
  return std::make_unique<BoxPredictor>(width, least_score, std::move(names));
}

}  // namespace mxtrain::tasks
