// SPDX-License-Identifier: Apache-2.0
#pragma once
// Labels that are boxes in an image. Private to io.
#include <optional>
#include <span>

#include "mxtrain/base/expected.h"
#include "mxtrain/io/boxes.h"
#include "mxtrain/io/image_origin.h"
#include "mxtrain/io/source.h"

namespace mxtrain::io {

inline constexpr float kNoBox = -1;  // in every column of the rows after the last object
// Of an object with less of its area in the image, or narrower in pixels, nothing is to be learnt.
inline constexpr double kLeastSeenPart = 0.25, kLeastBoxSide = 1;

// Throws kConfig unless the shape of a field of boxes is [most, columns] of at least kBoxColumns.
MXTRAIN_API void CheckBoxSpec(const FieldSpec& spec);
// What is still seen of an object: the smallest box with upright sides around it, in pixels of the
// image as it is now.
struct SeenBox {
  Point low, high;
  bool enough;  // whether something is to be learnt of it
};
// Nothing of an object that is not seen at all, or has no area.
std::optional<SeenBox> SeenOf(const BoxRow& box, const ImageOrigin& origin);

// Moves the boxes of an example, `values` as in FieldValue, and writes them to the row `to` of
// `shape`, [at least as many as the field's most, kBoxColumns]: the smallest box with upright sides
// around what of the box the image still shows. An object of which nothing is seen, or without an
// area, is dropped; one of which too little is (above) becomes a kDifficultBox, unless it is a
// crowd. Further columns are skipped. Refuses numbers that are not rows of columns, and more
// objects than the most.
MXTRAIN_API std::optional<Refusal> WriteBoxes(const FieldSpec& spec, std::span<const float> values,
                                              const ImageOrigin& origin, const TShape& shape,
                                              float* to);

}  // namespace mxtrain::io
