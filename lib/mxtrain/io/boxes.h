// SPDX-License-Identifier: Apache-2.0
#pragma once
// Objects in images: a class and a box each. In labels (FieldKind::kBoxes) an object is a row of
//
//   class, left, top, right, bottom, ignored
//
// The box is in pixels from the upper left corner of the image as it is shown, so that the image
// ends at (width, height); of a file, as the file says it. `ignored` is a BoxUse. Sources may have
// a seventh number, the area of the object in pixels of the file, negative if it is not known;
// batches have six.
#include <cstdint>
#include <span>

namespace mxtrain::io {

// What an object is for. A net learns nothing of those that are not plain.
enum BoxUse : int {
  kPlainBox = 0,
  kDifficultBox = 1,  // of Pascal VOC; and of what too little is seen after a transform
  kCrowdBox = 2,      // of COCO: several objects in one box
};

struct BoxRow {
  float label, left, top, right, bottom, use;

  // Of a row of a label.
  explicit BoxRow(const float* row)
      : label(row[0]), left(row[1]), top(row[2]), right(row[3]), bottom(row[4]), use(row[5]) {}
  // The row is no object but fills a batch.
  bool empty() const { return !(label >= 0); }
  bool IsFor(BoxUse wanted) const { return use == static_cast<float>(wanted); }
};
inline constexpr int64_t kBoxColumns = 6;

}  // namespace mxtrain::io
