// SPDX-License-Identifier: Apache-2.0
#include "app/inference/label_files.h"

#include <filesystem>
#include <map>
#include <system_error>

#include "app/inference/file_names.h"
#include "app/report/output.h"
#include "app/report/result_file.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/json.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/class_names.h"

namespace mxtrain::inference {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string>& ClassesOf(const std::vector<PredictedHead>& heads,
                                          const char* format) {
  if (heads.size() != 1) {
    Throw(ErrorKind::kUsage, "--format {} is for models with one prediction; this model has {}",
          format, heads.size());
  }
  const std::vector<std::string>* const classes = heads[0].predictor->BoxClasses();
  if (!classes) {
    Throw(ErrorKind::kUsage,
          "--format {} is for models that predict boxes; this model does not: csv or jsonl",
          format);
  }
  return *classes;
}

// Of an image whose size is known.
const tasks::BoxesInImage& BoxesOf(const Prediction& p, const char* format) {
  const tasks::BoxesInImage& found = *p.heads[0]->Boxes();
  if (found.width <= 0 || found.height <= 0)
    Throw(ErrorKind::kUsage, "--format {}: {} has no size: it is not read from an image", format,
          p.name);
  return found;
}

class CocoFile final : public PredictionSink {
 public:
  CocoFile(const std::string& path, const std::vector<PredictedHead>& heads)
      : out_(path), images_(Json::array()), boxes_(Json::array()), classes_(Json::array()) {
    int64_t id = 0;
    for (const std::string& name : ClassesOf(heads, "coco"))
      classes_.push_back({{"id", ++id}, {"name", name}});
  }

  void Take(Prediction& p) override {
    const tasks::BoxesInImage& found = BoxesOf(p, "coco");
    const size_t image = images_.size() + 1;
    images_.push_back(
        {{"id", image}, {"file_name", p.name}, {"width", found.width}, {"height", found.height}});
    for (const FoundBox& box : found.boxes) {
      const double width = box.right - box.left, height = box.bottom - box.top;
      boxes_.push_back({{"id", boxes_.size() + 1},
                        {"image_id", image},
                        {"category_id", box.label + 1},
                        {"bbox", {box.left, box.top, width, height}},
                        {"area", width * height},
                        {"iscrowd", 0},
                        {"score", box.score}});
    }
  }

  void Finish() override {
    out_.Write(
        report::JsonText({{"images", images_}, {"annotations", boxes_}, {"categories", classes_}}) +
        "\n");
    out_.Finish();
  }

 private:
  report::ResultFile out_;
  Json images_, boxes_, classes_;
};

class YoloFolder final : public PredictionSink {
 public:
  YoloFolder(std::string folder, std::string images, const std::vector<ExampleNames>& examples,
             const std::vector<PredictedHead>& heads, Logger log)
      : folder_(std::move(folder)), images_(std::move(images)), log_(std::move(log)) {
    const std::string classes = io::ClassNameLines(ClassesOf(heads, "yolo"));
    std::error_code missing;
    if (fs::exists(folder_, missing) && !fs::is_empty(folder_, missing)) {
      Throw(ErrorKind::kUsage,
            "--output {}: the folder of --format yolo must be new or empty; nothing is overwritten",
            folder_);
    }
    const fs::path class_file = fs::path(folder_) / "classes.txt";
    std::map<fs::path, std::string> of = {{class_file, "the names of the classes"}};
    for (const ExampleNames& example : examples) {
      const auto [other, added] = of.emplace(PathOf(example.file, example.name), example.name);
      if (added) continue;
      Throw(ErrorKind::kUsage, "the labels of {} and {} would both be {}", other->second,
            example.name, other->first.string());
    }
    MakeFolders(folder_);
    WriteFileAtomically(class_file.string(), classes);
  }

  void Take(Prediction& p) override {
    const tasks::BoxesInImage& found = BoxesOf(p, "yolo");
    std::string lines;
    for (const FoundBox& box : found.boxes) {
      lines += mxtrain::format(
          "{} {:.6f} {:.6f} {:.6f} {:.6f}\n", box.label, (box.left + box.right) / 2 / found.width,
          (box.top + box.bottom) / 2 / found.height, (box.right - box.left) / found.width,
          (box.bottom - box.top) / found.height);
    }
    const fs::path path = PathOf(p.file, p.name);
    MakeFolders(path.parent_path().string());
    WriteFileAtomically(path.string(), lines);
    ++written_;
    boxes_ += static_cast<int64_t>(found.boxes.size());
  }

  void Finish() override {
    log_.Write(LogLevel::kInfo, mxtrain::format("boxes of {} in {}: {}", Counted(written_, "image"),
                                                folder_, boxes_));
  }

 private:
  fs::path PathOf(const std::string& file, const std::string& name) const {
    const fs::path stem = StemBelow(file, name, images_);
    return fs::path(folder_) / stem.parent_path() / Shortened(stem.filename().string(), ".txt");
  }

  const std::string folder_, images_;
  const Logger log_;
  int64_t written_ = 0, boxes_ = 0;
};

}  // namespace

std::unique_ptr<PredictionSink> NewCocoFile(const std::string& path,
                                            const std::vector<PredictedHead>& heads) {
  return std::make_unique<CocoFile>(path, heads);
}

std::unique_ptr<PredictionSink> NewYoloFolder(const std::string& folder, const std::string& images,
                                              const std::vector<ExampleNames>& examples,
                                              const std::vector<PredictedHead>& heads,
                                              const Logger& log) {
  return std::make_unique<YoloFolder>(folder, images, examples, heads, log);
}

}  // namespace mxtrain::inference
