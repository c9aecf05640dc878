// SPDX-License-Identifier: Apache-2.0
#pragma once
// Labels that are points of an image. Private to io.
#include <optional>
#include <span>

#include "mxtrain/base/expected.h"
#include "mxtrain/io/point_map.h"
#include "mxtrain/io/source.h"

namespace mxtrain::io {

inline constexpr float kNoPoint = -1;  // in every column of the rows after the last point

// Throws kConfig unless the shape of a field of points is [most, columns].
void CheckPointSpec(const FieldSpec& spec);
// Moves the points of an example, `values` as in FieldValue, and writes those that are within an
// image of height x width, its edges included, to the row `to`, [most, columns]. Refuses numbers
// that are not rows of columns, and more points than the most.
std::optional<Refusal> WritePoints(const FieldSpec& spec, std::span<const float> values,
                                   const PointMap& map, int64_t height, int64_t width, float* to);

}  // namespace mxtrain::io
