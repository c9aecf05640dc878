// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/segmentation/mask_predictor.h"

#include <algorithm>
#include <cmath>

#include "app/report/annotation.h"
#include "app/tasks/class_colours.h"
#include "app/tasks/scored_classes.h"
#include "mxtrain/base/format.h"
#include "mxtrain/io/source.h"

namespace mxtrain::tasks {
namespace {

// Where a place between the centres of pixels lies: the pixels on both sides, and the weight of the
// second.
struct Between {
  size_t first, second;
  float weight;
};

Between BetweenOf(double place, int64_t size) {
  const double at = std::clamp(place - 0.5, 0.0, static_cast<double>(size - 1));
  const double whole = std::floor(at);
  const auto first = static_cast<size_t>(whole);
  return {first, std::min(first + 1, static_cast<size_t>(size - 1)),
          static_cast<float>(at - whole)};
}

class MaskPrediction final : public HeadPrediction {
 public:
  // `mask`: the classes of the pixels of the file; empty if scores are not finite. `scores`: those
  // that it is of; none of tiles.
  MaskPrediction(std::span<const float> scores, io::Image mask, const ClassNames& names)
      : scores_(scores), finite_(!mask.pixels.empty()), names_(names), mask_(std::move(mask)) {
    if (!finite_) return;
    std::vector<int64_t> counts(256);
    for (const uint8_t k : mask_.pixels) ++counts[k];
    for (int64_t k = 0; k < io::kNoClass; ++k) {
      const int64_t count = counts[static_cast<size_t>(k)];
      if (count > 0)
        parts_.emplace_back(k,
                            static_cast<double>(count) / static_cast<double>(mask_.pixels.size()));
    }
    std::ranges::stable_sort(parts_,
                             [](const auto& a, const auto& b) { return a.second > b.second; });
  }

  std::span<const float> numbers() const override { return scores_; }
  std::string Text() const override { return finite_ ? Joined("  ", 4) : "nan"; }
  std::vector<std::string> Cells() const override {
    return {finite_ ? Joined(";", parts_.size()) : "nan"};
  }
  Json ToJson() const override {
    if (!finite_) return {{"classes", nullptr}};
    Json list = Json::array();
    for (const auto& [k, part] : parts_)
      list.push_back({{"class", names_[k]}, {"index", k}, {"part", part}});
    return {{"classes", list}, {"height", mask_.height}, {"width", mask_.width}};
  }
  std::string Caption() const override { return finite_ ? Joined(", ", 4) : "nan"; }
  void DrawOn(io::Image* image) const override {
    if (mask_.height != image->height || mask_.width != image->width) return;
    PaintClasses(mask_, image);
    std::vector<report::LegendEntry> legend;
    for (const auto& [k, part] : parts_)
      legend.push_back({ColourOfClass(static_cast<int>(k)), names_[k]});
    report::DrawLegend(legend, image);
  }
  std::string PredictedPng() const override {
    return finite_ ? io::EncodePng(mask_, ClassPalette()) : "";
  }

 private:
  // "road 0.4512  sky 0.2033", of the largest.
  std::string Joined(const char* separator, size_t most) const {
    std::string text;
    for (size_t i = 0; i < std::min(most, parts_.size()); ++i)
      text +=
          format("{}{} {:.4f}", i > 0 ? separator : "", names_[parts_[i].first], parts_[i].second);
    return text;
  }

  const std::span<const float> scores_;
  const bool finite_;
  const ClassNames& names_;
  const io::Image mask_;                           // of the file's size
  std::vector<std::pair<int64_t, double>> parts_;  // class and part of the image, largest first
};

io::Image MaskOf(std::span<const float> scores, const TShape& shape, const Example& example) {
  io::Image mask;
  if (!IsFinite(scores)) return mask;
  const io::ImageOrigin& origin = example.origin();
  const bool of_file = origin.height() > 0;
  mask.Resize(of_file ? origin.height() : static_cast<int>(shape[2]),
              of_file ? origin.width() : static_cast<int>(shape[3]), 1);
  WriteClassesOfFile(scores, shape, of_file ? origin.map() : io::PointMap(),
                     {0, 0, mask.height, mask.width}, &mask);
  return mask;
}

// Each pixel has the class that the tile says whose center is nearest.
class MaskOfTiles final : public JoinedPrediction {
 public:
  MaskOfTiles(const TShape& shape, const ClassNames& names) : shape_(shape), names_(names) {}

  void Add(std::span<const float> values, const Example& example) override {
    const io::Tile& tile = *example.tile();
    finite_ = finite_ && IsFinite(values);
    if (!finite_) return;
    if (mask_.pixels.empty()) mask_.Resize(tile.height, tile.width, 1);
    WriteClassesOfFile(values, shape_, example.origin().map(), tile.own, &mask_);
  }
  std::unique_ptr<HeadPrediction> Take() override {
    return std::make_unique<MaskPrediction>(std::span<const float>(),
                                            finite_ ? std::move(mask_) : io::Image(), names_);
  }

 private:
  const TShape& shape_;
  const ClassNames& names_;
  bool finite_ = true;
  io::Image mask_;
};

class MaskPredictor final : public Predictor {
 public:
  MaskPredictor(const TShape& shape, std::vector<std::string> names)
      : shape_(shape), names_(std::move(names)) {}

  Abilities abilities() const override { return {.images = true, .placed = true, .tiles = true}; }
  int64_t width() const override { return shape_.Product(1, shape_.ndim()); }
  std::vector<std::string> Columns() const override { return {"classes"}; }
  std::unique_ptr<HeadPrediction> Predict(std::span<const float> values,
                                          const Example& example) const override {
    return std::make_unique<MaskPrediction>(values, MaskOf(values, shape_, example), names_);
  }
  std::unique_ptr<JoinedPrediction> Join() const override {
    return std::make_unique<MaskOfTiles>(shape_, names_);
  }
  std::string HowNotFinite() const override { return "no mask is written"; }

 private:
  const TShape shape_;
  const ClassNames names_;
};

}  // namespace

void WriteClassesOfFile(std::span<const float> scores, const TShape& shape,
                        const io::PointMap& to_net, const io::Box& part, io::Image* mask) {
  const int64_t classes = shape[1], net_height = shape[2], net_width = shape[3];
  const auto pixels = static_cast<size_t>(net_height * net_width);
  for (int y = part.y; y < part.y + part.height; ++y) {
    for (int x = part.x; x < part.x + part.width; ++x) {
      const io::Point at = to_net({x + 0.5, y + 0.5});
      uint8_t& best = mask->row(y)[x];
      best = io::kNoClass;
      const bool seen = at.x >= 0 && at.y >= 0 && at.x <= static_cast<double>(net_width) &&
                        at.y <= static_cast<double>(net_height);
      if (!seen) continue;
      const Between column = BetweenOf(at.x, net_width), row = BetweenOf(at.y, net_height);
      const size_t above = row.first * static_cast<size_t>(net_width),
                   below = row.second * static_cast<size_t>(net_width);
      float highest = 0;
      for (int64_t k = 0; k < classes; ++k) {
        const float* const plane = scores.data() + static_cast<size_t>(k) * pixels;
        const float top = std::lerp(plane[above + column.first], plane[above + column.second],
                                    column.weight),
                    bottom = std::lerp(plane[below + column.first], plane[below + column.second],
                                       column.weight);
        const float score = std::lerp(top, bottom, row.weight);
        if (k > 0 && score <= highest) continue;
        highest = score;
        best = static_cast<uint8_t>(k);
      }
    }
  }
}

std::unique_ptr<Predictor> NewMaskPredictor(const TShape& shape, std::vector<std::string> names) {
  return std::make_unique<MaskPredictor>(shape, std::move(names));
}

}  // namespace mxtrain::tasks
