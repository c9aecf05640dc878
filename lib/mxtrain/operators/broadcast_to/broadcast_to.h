// SPDX-License-Identifier: Apache-2.0
#pragma once
// Repeats an array along axes of length one: broadcast_axis (broadcast_axes: axes and sizes),
// broadcast_to (to a shape; 0 keeps a size) and broadcast_like (to the shape of another array, or
// of some of its axes). The gradient is summed over the repeated axes; the array that only provides
// its shape has none (zero).
#include <optional>

#include "mxtrain/operator/simple_op.h"

namespace mxtrain::broadcast_to {

struct BroadcastAxisParam : Parameter<BroadcastAxisParam> {
  TShape axis, size;
  static void Declare(Fields<BroadcastAxisParam>& f) {
    const TShape none{std::span<const int64_t>()};
    f.Add("axis", &BroadcastAxisParam::axis)
        .Default(none)
        .Help("axes of length 1; negative from the end");
    f.Add("size", &BroadcastAxisParam::size).Default(none).Help("their lengths in the output");
  }
};

struct BroadcastToParam : Parameter<BroadcastToParam> {
  TShape shape;
  static void Declare(Fields<BroadcastToParam>& f) {
    f.Add("shape", &BroadcastToParam::shape)
        .Default(TShape(std::span<const int64_t>()))
        .Help("output shape, with as many axes; 0 keeps a length");
  }
};

struct BroadcastLikeParam : Parameter<BroadcastLikeParam> {
  std::optional<TShape> lhs_axes, rhs_axes;
  static void Declare(Fields<BroadcastLikeParam>& f) {
    f.Add("lhs_axes", &BroadcastLikeParam::lhs_axes)
        .Default(std::nullopt)
        .Help("axes to repeat; None: all");
    f.Add("rhs_axes", &BroadcastLikeParam::rhs_axes)
        .Default(std::nullopt)
        .Help("equally many axes of rhs, which give the lengths");
  }
};

}  // namespace mxtrain::broadcast_to
