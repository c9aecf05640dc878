// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/coco_masks.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "mxtrain/base/error.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/internal/coco_objects.h"
#include "mxtrain/io/internal/image_files.h"

namespace mxtrain::io {
namespace {

struct MaskedObject {
  std::string id;  // of the annotation
  uint64_t segmentation = CocoSegmentations::kNone;
  uint8_t label = kNoClass;  // kNoClass: a crowd
};

struct MaskedImage {
  std::string path, id;
  double height = 0, width = 0;  // as the file says, 0 if it does not
  size_t end = 0;                // of its objects, and of those before them
};

class CocoMasks final : public Source {
 public:
  CocoMasks(CocoTables tables, const CocoParam& param) : file_(param.path) {
    classes_ = param.classes.empty() ? DefaultClasses(tables) : param.classes;
    if (std::ssize(classes_) > kNoClass)
      Throw(ErrorKind::kConfig, "{}: masks have at most {} classes, not {}", file_, kNoClass,
            classes_.size());
    const auto background = std::ranges::find(classes_, kBackgroundClass);
    if (background != classes_.end())
      background_ = static_cast<uint8_t>(background - classes_.begin());
    CocoObjects objects = ArrangeObjects(tables, classes_, file_);
    std::vector<std::string> paths = CocoImagePaths(tables, param.root, file_, &warnings_);
    for (size_t i = 0; i < paths.size(); ++i) {
      const CocoImage& image = tables.images[i];
      images_.push_back(
          {std::move(paths[i]), image.id, image.height, image.width, objects.ends[i]});
    }
    for (size_t k = 0; k < objects.order.size(); ++k) {
      CocoObject& object = tables.objects[objects.order[k]];
      objects_.push_back({std::move(object.id), object.segmentation,
                          object.crowd ? kNoClass : static_cast<uint8_t>(objects.labels[k])});
    }
    segmentations_ = std::move(tables.segmentations);
    RequireSegmentation();
    NoteBackgrounds();
  }

  int64_t size() const override { return std::ssize(images_); }
  const std::vector<FieldSpec>& data_fields() const override { return data_fields_; }
  const std::vector<FieldSpec>& label_fields() const override { return label_fields_; }
  void Read(int64_t index, Sample* sample) const override {
    sample->data.resize(1);
    sample->labels.resize(1);
    std::string& encoded = sample->data[0].encoded;
    encoded = ReadImageFile(FileOf(index));
    const auto info = ProbeImage(encoded);
    if (!info) Throw(ErrorKind::kData, "{}", info.error().reason);
    sample->labels[0].values = {};
    Paint(static_cast<size_t>(index), info->height, info->width, &sample->labels[0].classes);
  }
  std::span<const float> LabelOf(int64_t, size_t, Sample*) const override { return {}; }
  std::string Name(int64_t index) const override { return FileOf(index); }
  std::string FileOf(int64_t index) const override {
    return images_[static_cast<size_t>(index)].path;
  }
  std::optional<int> ClassOf(int64_t) const override { return std::nullopt; }
  const std::vector<std::string>& class_names() const override { return classes_; }

 private:
  static std::vector<std::string> DefaultClasses(const CocoTables& tables) {
    std::vector<std::string> classes = CategoryNames(tables);
    std::erase(classes, kBackgroundClass);
    classes.insert(classes.begin(), std::string(kBackgroundClass));
    return classes;
  }

  void RequireSegmentation() const {
    if (objects_.empty() || std::ranges::any_of(objects_, [](const MaskedObject& object) {
          return object.segmentation != CocoSegmentations::kNone;
        }))
      return;
    Throw(ErrorKind::kData,
          "{}: none of its annotations has a \"segmentation\", of which label = mask makes masks; "
          "with boxes alone, use label = given",
          file_);
  }

  void NoteBackgrounds() {
    std::vector<std::string> empty;
    for (size_t i = 0; i < images_.size(); ++i) {
      if (First(i) == images_[i].end) empty.push_back(images_[i].path);
    }
    if (empty.empty()) return;
    notes_.push_back(format("{}: {} of {} {} no annotations, so that all pixels are {} (first: {})",
                            file_, empty.size(), Counted(images_.size(), "image"),
                            empty.size() == 1 ? "has" : "have",
                            background_ == kNoClass ? "of no class" : kBackgroundClass, empty[0]));
  }

  size_t First(size_t i) const { return i == 0 ? 0 : images_[i - 1].end; }

  // The image of the file's classes, as shown.
  void Paint(size_t i, int height, int width, Image* classes) const {
    const MaskedImage& image = images_[i];
    if (First(i) < image.end) CheckSize(image, height, width);
    std::vector<uint8_t> columns(static_cast<size_t>(height) * static_cast<size_t>(width),
                                 background_);
    for (const size_t k : Order(i, height, width)) {
      for (const PixelRun& run : RunsOf(objects_[k], height, width))
        std::fill(columns.begin() + run.begin, columns.begin() + run.end, objects_[k].label);
    }
    classes->Resize(height, width, 1);
    for (int y = 0; y < height; ++y) {
      uint8_t* const row = classes->row(y);
      const uint8_t* from = columns.data() + y;
      for (int x = 0; x < width; ++x, from += height) row[x] = *from;
    }
  }

  // The objects of an image, the topmost last. Those of one image may be many: their runs are not
  // kept.
  std::vector<size_t> Order(size_t i, int height, int width) const {
    std::vector<std::pair<int64_t, size_t>> keys;  // crowds before others, then the larger ones
    for (size_t k = First(i); k < images_[i].end; ++k) {
      const int64_t pixels = CountPixels(RunsOf(objects_[k], height, width));
      keys.emplace_back(
          objects_[k].label == kNoClass ? std::numeric_limits<int64_t>::min() : -pixels, k);
    }
    std::ranges::sort(keys);
    std::vector<size_t> order;
    for (const auto& [key, k] : keys) order.push_back(k);
    return order;
  }

  PixelRuns RunsOf(const MaskedObject& object, int height, int width) const {
    auto runs = segmentations_.Read(object.segmentation, height, width);
    if (runs) return *std::move(runs);
    Throw(ErrorKind::kData, "{}: annotation {}: {}", file_, Shortened(object.id),
          runs.error().reason);
  }

  void CheckSize(const MaskedImage& image, int height, int width) const {
    const bool fits =
        (image.height == 0 || image.height == height) && (image.width == 0 || image.width == width);
    if (fits) return;
    Throw(ErrorKind::kData,
          "{}: image {} is of {}x{} pixels there, but its file is of {}x{}; was it resized after "
          "it was annotated?",
          file_, Shortened(image.id), image.width, image.height, width, height);
  }

  const std::string file_;
  std::vector<std::string> classes_;
  uint8_t background_ = kNoClass;
  std::vector<MaskedImage> images_;
  std::vector<MaskedObject> objects_;
  CocoSegmentations segmentations_;
  std::vector<FieldSpec> data_fields_ = {{"data", FieldKind::kImage, TShape()}},
                         label_fields_ = {{"label", FieldKind::kMask, TShape()}};
};

}  // namespace

std::unique_ptr<Source> NewCocoMasks(const CocoParam& param) {
  CocoTables tables = ReadCocoFile(param.path, CocoContent::kSegmentations);
  if (tables.images.empty()) Throw(ErrorKind::kData, "{}: it names no images", param.path);
  return std::make_unique<CocoMasks>(std::move(tables), param);
}

}  // namespace mxtrain::io
