// SPDX-License-Identifier: Apache-2.0
#pragma once
// Images whose labels have places in them, to see that pixels, classes and boxes move alike.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "mxtrain/io/boxes.h"
#include "mxtrain/io/random_stream.h"
#include "tests/support/pipeline_data.h"

namespace mxtrain::test {

// Images of noise with classes of their pixels and boxes; one of size 0 is a file that is no image.
class Scenes final : public Source {
 public:
  static constexpr int kMost = 6;  // boxes

  // `sizes`: height and width of each.
  explicit Scenes(const std::vector<std::pair<int, int>>& sizes) {
    for (const auto& [height, width] : sizes) {
      const auto number = static_cast<int64_t>(images_.size());
      RandomStream random(5, 0, number);
      Image image, classes;
      image.Resize(height, width, 3);
      for (uint8_t& value : image.pixels) value = static_cast<uint8_t>(random.Below(256));
      classes.Resize(height, width, 1);
      for (uint8_t& value : classes.pixels) value = static_cast<uint8_t>(random.Below(5));
      std::vector<float> boxes;
      for (int i = 0; i < kMost && height > 0; ++i) {
        const double left = random.Uniform(0, width - 2), top = random.Uniform(0, height - 2);
        for (const double part : {double(i % 3), left, top, random.Uniform(left + 1, width),
                                  random.Uniform(top + 1, height), 0.0})
          boxes.push_back(static_cast<float>(part));
      }
      files_.push_back(height > 0 ? EncodePng(image) : "no image");
      images_.push_back(std::move(image));
      classes_.push_back(std::move(classes));
      boxes_.push_back(std::move(boxes));
    }
  }

  int64_t size() const override { return static_cast<int64_t>(images_.size()); }
  const std::vector<FieldSpec>& data_fields() const override { return data_; }
  const std::vector<FieldSpec>& label_fields() const override { return labels_; }
  void Read(int64_t index, Sample* sample) const override {
    const auto i = static_cast<size_t>(index);
    sample->data.resize(1);
    sample->labels.resize(2);
    sample->data[0].encoded = files_[i];
    sample->labels[0].classes = classes_[i];
    sample->labels[1].values = boxes_[i];
  }
  std::string Name(int64_t index) const override { return format("scene {}", index); }
  std::optional<int> ClassOf(int64_t) const override { return std::nullopt; }
  const std::vector<std::string>& class_names() const override { return none_; }

  const Image& image(int64_t index) const { return images_[static_cast<size_t>(index)]; }
  const Image& classes(int64_t index) const { return classes_[static_cast<size_t>(index)]; }
  const std::vector<float>& boxes(int64_t index) const {
    return boxes_[static_cast<size_t>(index)];
  }

 private:
  std::vector<std::string> files_, none_;
  std::vector<Image> images_, classes_;
  std::vector<std::vector<float>> boxes_;
  std::vector<FieldSpec> data_ = {{"data", FieldKind::kImage, TShape()}},
                         labels_ = {{"mask", FieldKind::kMask, TShape()},
                                    {"boxes", FieldKind::kBoxes, TShape{kMost, kBoxColumns}}};
};

// Of rows of boxes the parts within a window of their image, of which too little is left are
// difficult (io/internal/box_labels.h says when), from `origin` on.
inline std::vector<float> BoxesWithin(const std::vector<float>& rows, const Box& window,
                                      const std::pair<int, int>& origin) {
  std::vector<float> found;
  for (size_t i = 0; i < rows.size(); i += 6) {
    const double left = std::max<double>(rows[i + 1], window.x),
                 top = std::max<double>(rows[i + 2], window.y),
                 right = std::min<double>(rows[i + 3], window.x + window.width),
                 bottom = std::min<double>(rows[i + 4], window.y + window.height);
    if (right <= left || bottom <= top) continue;
    const double whole = (double(rows[i + 3]) - rows[i + 1]) * (double(rows[i + 4]) - rows[i + 2]);
    const bool enough =
        (right - left) * (bottom - top) >= 0.25 * whole && right - left >= 1 && bottom - top >= 1;
    const double use = rows[i + 5] != 0 || enough ? rows[i + 5] : double{kDifficultBox};
    for (const double part : {double(rows[i]), left - origin.first, top - origin.second,
                              right - origin.first, bottom - origin.second, use})
      found.push_back(static_cast<float>(part));
  }
  return found;
}

}  // namespace mxtrain::test
