// SPDX-License-Identifier: Apache-2.0
// A task from outside the program: the centres of the objects in an image, as many as there are.
// Its data, a metric and the task are here; the program linked with this file knows them in every
// command.
//
// A line of the data is a JSON object: {"image": "a.png", "centres": [[x, y], ...]}, in pixels. A
// net has a row of two numbers for each of at most so many centres; rows of -1 stand for none.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sstream>

#include "app/report/output.h"
#include "app/tasks/task_list.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/io/source_factory.h"
#include "mxtrain/metric/metric_table.h"

namespace mxtrain::tasks {
namespace {

using Centre = std::pair<float, float>;

// The rows that are centres, in order.
std::vector<Centre> CentresIn(std::span<const float> rows) {
  std::vector<Centre> centres;
  for (size_t i = 0; i + 1 < rows.size(); i += 2) {
    if (rows[i] >= 0 && rows[i + 1] >= 0) centres.emplace_back(rows[i], rows[i + 1]);
  }
  return centres;
}

// How many of them are within this distance of one of the others.
int64_t Found(const std::vector<Centre>& centres, const std::vector<Centre>& others) {
  constexpr float kNear = 2;
  return std::ranges::count_if(centres, [&others](const Centre& centre) {
    return std::ranges::any_of(others, [&centre](const Centre& other) {
      return std::hypot(centre.first - other.first, centre.second - other.second) <= kNear;
    });
  });
}

// --- data

struct CentresParam : Parameter<CentresParam> {
  std::string path;
  int64_t most;
  bool labels;
  static void Declare(Fields<CentresParam>& f) {
    f.Add("path", &CentresParam::path).IsPath().Required().Help("file with an object per line");
    f.Add("most", &CentresParam::most)
        .Default(3)
        .Range(1, 100)
        .Help("centres of an image, at most");
    f.Add("labels", &CentresParam::labels).Default(true).Internal().Help("False: without centres");
  }
};

class CentresSource final : public io::Source {
 public:
  explicit CentresSource(const CentresParam& param) : file_(param.path) {
    const std::filesystem::path root = std::filesystem::path(file_).parent_path();
    std::istringstream text(ReadFile(file_));
    for (std::string line; std::getline(text, line);) {
      const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
      if (!json.is_object() || !json.contains("image"))
        Throw(ErrorKind::kData, "{}:{}: no object with an image", file_, images_.size() + 1);
      images_.push_back((root / json["image"].get<std::string>()).string());
      std::vector<float>& rows = centres_.emplace_back();
      for (const Json& centre : json.value("centres", Json::array())) {
        rows.push_back(centre.at(0));
        rows.push_back(centre.at(1));
      }
    }
    if (param.labels)
      label_fields_ = {{"centres_label", io::FieldKind::kPoints, TShape{param.most, 2}}};
  }

  int64_t size() const override { return static_cast<int64_t>(images_.size()); }
  const std::vector<io::FieldSpec>& data_fields() const override { return data_fields_; }
  const std::vector<io::FieldSpec>& label_fields() const override { return label_fields_; }
  void Read(int64_t index, io::Sample* sample) const override {
    sample->data.resize(1);
    sample->labels.resize(label_fields_.size());
    sample->data[0].encoded = ReadFile(FileOf(index));
    if (!label_fields_.empty()) sample->labels[0].values = centres_[static_cast<size_t>(index)];
  }
  std::string Name(int64_t index) const override { return format("{}:{}", file_, index + 1); }
  std::string FileOf(int64_t index) const override { return images_[static_cast<size_t>(index)]; }
  std::optional<int> ClassOf(int64_t) const override { return std::nullopt; }
  const std::vector<std::string>& class_names() const override { return no_classes_; }

 private:
  const std::string file_;
  std::vector<std::string> images_;
  std::vector<std::vector<float>> centres_;
  std::vector<io::FieldSpec> data_fields_ = {{"data", io::FieldKind::kImage, TShape()}},
                             label_fields_;
  std::vector<std::string> no_classes_;
};

std::unique_ptr<io::Source> NewCentresSource(const CentresParam& param) {
  return std::make_unique<CentresSource>(param);
}

// --- metric: the fraction of the true centres that are found

class CentresFound final : public Metric {
 public:
  CentresFound() : Metric("centres_found") {}
  bool higher_is_better() const override { return true; }
  void Reset() override { found_ = all_ = 0; }
  double value() const override { return all_ > 0 ? found_ / all_ : std::nan(""); }

 protected:
  void Add(const TBlob& label, const TBlob& pred, int64_t count) override {
    const auto width = static_cast<size_t>(label.Size() / label.shape[0]);
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
      const auto truth = CentresIn({label.dptr<float>() + i * width, width}),
                 guess = CentresIn({pred.dptr<float>() + i * width, width});
      found_ += static_cast<double>(Found(truth, guess));
      all_ += static_cast<double>(truth.size());
    }
  }
  std::vector<double> Sums() const override { return {found_, all_}; }
  bool SetSums(const std::vector<double>& sums) override {
    if (sums.size() != 2) return false;
    found_ = sums[0], all_ = sums[1];
    return true;
  }
  bool AddSums(const std::vector<double>& sums) override {
    if (sums.size() != 2) return false;
    found_ += sums[0], all_ += sums[1];
    return true;
  }

 private:
  double found_ = 0, all_ = 0;
};

// --- task

// A cross of five pixels in red, or gray.
void DrawCross(const Centre& centre, io::Image* image) {
  for (int d = -2; d <= 2; ++d) {
    for (const auto& [x, y] : {std::pair{d, 0}, std::pair{0, d}}) {
      const int column = static_cast<int>(centre.first) + x,
                row = static_cast<int>(centre.second) + y;
      if (column < 0 || row < 0 || column >= image->width || row >= image->height) continue;
      for (int c = 0; c < image->channels; ++c)
        image->pixels[static_cast<size_t>((row * image->width + column) * image->channels + c)] =
            image->channels == 1 ? 128
            : c == 0             ? 255
                                 : 0;
    }
  }
}

class CentresReport final : public Report {
 public:
  using Report::Report;
  void WriteEach(const LineOutput& lines) override {
    lines_ = lines;
    if (lines.format == report::EachFormat::kCsv) lines.file->Write("file,centres,found\n");
  }
  void Add(const Examples& examples, const std::vector<NDArray>& outputs) override {
    const auto compared = Compare(head(), examples, outputs);
    if (!compared || compared->label.size() != compared->outputs.size()) return;
    const auto width = compared->label.size() / static_cast<size_t>(compared->label_shape[0]);
    for (size_t i = 0; i < examples.count(); ++i) {
      const auto truth = CentresIn(std::span(compared->label).subspan(i * width, width)),
                 guess = CentresIn(std::span(compared->outputs).subspan(i * width, width));
      const int64_t found = Found(truth, guess);
      found_ += found;
      missed_ += std::ssize(truth) - found;
      invented_ += std::ssize(guess) - Found(guess, truth);
      if (lines_.file) WriteLine(examples[i].name(), truth.size(), found);
    }
  }
  bool empty() const override { return found_ + missed_ + invented_ == 0; }
  std::string Text(int, bool) const override {
    return format("\n{}: {} centres found, {} missed, {} invented\n", head().name, found_, missed_,
                  invented_);
  }
  void AddTo(Json* result, int, bool several) const override {
    Json& own = several ? (*result)["centres"][head().name] : (*result)["centres"];
    own = {{"found", found_}, {"missed", missed_}, {"invented", invented_}};
  }

 private:
  void WriteLine(const std::string& name, size_t centres, int64_t found) const {
    lines_.file->Write(
        lines_.format == report::EachFormat::kCsv
            ? format("{},{},{}\n", report::QuoteCsv(name), centres, found)
            : report::JsonText({{"file", name}, {"centres", centres}, {"found", found}}) + "\n");
  }

  LineOutput lines_;
  int64_t found_ = 0, missed_ = 0, invented_ = 0;
};

class Centres final : public HeadPrediction {
 public:
  Centres(std::span<const float> rows, const io::PointMap& to_file) : rows_(rows) {
    for (const auto& [x, y] : CentresIn(rows)) {
      const io::Point in_file = to_file({x, y});
      centres_.emplace_back(in_file.x, in_file.y);
    }
  }
  std::span<const float> numbers() const override { return rows_; }
  std::string Text() const override {
    std::string text;
    for (const auto& [x, y] : centres_)
      text += format("{}({:.0f}, {:.0f})", text.empty() ? "" : "  ", x, y);
    return text.empty() ? "-" : text;
  }
  std::vector<std::string> Cells() const override {
    return {std::to_string(centres_.size()), Text()};
  }
  Json ToJson() const override {
    Json list = Json::array();
    for (const auto& [x, y] : centres_) list.push_back({x, y});
    return {{"centres", list}};
  }
  std::string Caption() const override { return Counted(std::ssize(centres_), "centre"); }
  void DrawOn(io::Image* image) const override {
    for (const Centre& centre : centres_) DrawCross(centre, image);
  }

 private:
  const std::span<const float> rows_;
  std::vector<Centre> centres_;  // in pixels of the file
};

class CentresPredictor final : public Predictor {
 public:
  explicit CentresPredictor(int64_t width) : width_(width) {}
  Abilities abilities() const override { return {.placed = true}; }
  int64_t width() const override { return width_; }
  std::vector<std::string> Columns() const override { return {"centres", "places"}; }
  std::unique_ptr<HeadPrediction> Predict(std::span<const float> values,
                                          const Example& example) const override {
    return std::make_unique<Centres>(values, example.to_file());
  }
  std::string HowNotFinite() const override { return "no centre is predicted"; }

 private:
  const int64_t width_;
};

class CentresTask final : public Task {
 public:
  using Task::Task;
  MetricSpec DefaultMetric() const override { return {"centres_found", {}, "", ""}; }
  std::vector<std::string> OddLabels(const io::Source& data, bool) const override {
    io::Sample sample;
    int64_t without = 0;
    for (int64_t i = 0; i < data.size(); ++i)
      without += data.LabelOf(i, 0, &sample).empty() ? 1 : 0;
    if (without == 0) return {};
    return {format("{} without a centre", Counted(without, "image"))};
  }
  void Show(std::span<const float> label, const TShape&, report::SheetImage* shown) const override {
    const std::vector<Centre> centres = CentresIn(label);
    for (const Centre& centre : centres) DrawCross(centre, &shown->image);
    shown->lines.push_back(Counted(std::ssize(centres), "centre"));
  }
  std::unique_ptr<Report> NewReport() const override {
    return std::make_unique<CentresReport>(head());
  }
  std::unique_ptr<Predictor> NewPredictor(const PredictionOptions&) const override {
    return std::make_unique<CentresPredictor>(head().width());
  }
};

std::unique_ptr<Task> OpenCentres(const Head& head) {
  const bool fits = head.loss && head.shape.ndim() == 3 && head.shape[2] == 2;
  return fits ? std::make_unique<CentresTask>(head) : nullptr;
}

[[maybe_unused]] const bool registered = [] {
  io::RegisterSource(io::SourceKindOf<CentresParam, NewCentresSource>(
      "centres", "images and the centres of their objects, a JSON object per line"));
  RegisterMetric({"centres_found",
                  {},
                  [](const Kwargs&) { return std::make_unique<CentresFound>(); },
                  [] { return std::vector<FieldInfo>(); }});
  TaskKind kind;
  kind.name = "centres";
  kind.help = "the centres of the objects in an image";
  kind.by_name_only = true;
  kind.open = OpenCentres;
  RegisterTask(std::move(kind));
  return true;
}();

}  // namespace
}  // namespace mxtrain::tasks
