// SPDX-License-Identifier: Apache-2.0
#pragma once
// An array and pieces of it along an axis: Concat and SliceChannel, each the backward of the other.
// All arrays have the same layout: plain, or one that CommonLayout found.
#include <optional>
#include <span>

#include "mxtrain/device/blocked_layout.h"
#include "mxtrain/operator/axis_split.h"
#include "mxtrain/operator/strided_view.h"

namespace mxtrain {

// The same in storage order.
struct AxisView : AxisSplit {
  AxisView() = default;
  AxisView(const TShape& shape, int axis, Layout layout = {}) : AxisSplit(shape, axis) {
    if (axis != 1 || !ChannelsLast(layout)) return;
    outer *= inner;
    inner = 1;
  }

  // Indices [begin, begin + columns) of the axis; and a piece of that length as an array of its
  // own.
  StridedView Columns(int64_t begin, int64_t columns) const {
    StridedView view;
    view.offset = begin * inner;
    view.Add(outer, length * inner);
    view.Add(columns * inner, 1);
    return view;
  }
  StridedView Piece(int64_t columns) const { return Columns(0, columns).Dense(); }
};

// Whether an array of `layout` consists of its pieces along `axis` as AxisView describes: every
// piece is whole contiguous blocks, without padding. This holds for blocked channels if the
// channels of every piece are a multiple of the block, and always for channels last.
MXTRAIN_API bool CutsWhole(Layout layout, const TShape& whole, int axis,
                           std::span<const TShape> pieces);
// The first opaque layout offered in which every piece is whole; else plain.
MXTRAIN_API Layout CommonLayout(std::span<const std::optional<Layout>> offered, const TShape& whole,
                                int axis, std::span<const TShape> pieces);

}  // namespace mxtrain
