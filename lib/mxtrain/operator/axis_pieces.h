// SPDX-License-Identifier: Apache-2.0
#pragma once
// Copies between an array and pieces of it along an axis. This implements Concat and SliceChannel,
// each the backward of the other. All arrays have the same layout: plain, or one that CommonLayout
// found.
#include <optional>
#include <span>

#include "mxtrain/device/blocked_layout.h"
#include "mxtrain/operator/kernel.h"

namespace mxtrain {

// An array viewed as [outer, length, inner] around an axis, in storage order. A piece is the
// columns [begin, begin + length of the piece).
struct AxisView {
  int64_t outer = 0, length = 0, inner = 0;
  AxisView() = default;
  AxisView(const TShape& shape, int axis, Layout layout = {})
      : outer(shape.Product(0, axis)),
        length(shape[axis]),
        inner(shape.Product(axis + 1, shape.ndim())) {
    if (axis != 1 || !ChannelsLast(layout)) return;
    outer *= inner;
    inner = 1;
  }
};

// piece = or += whole[:, begin : begin + length, :], and the reverse. `length` is that of the
// piece. strided_view.cuh has these functions for OnGpu.
MXTRAIN_API void CopyFromWhole(const OnCpu& device, OpReqType req, const TBlob& whole,
                               const AxisView& view, int64_t begin, int64_t length,
                               const TBlob& piece);
MXTRAIN_API void CopyToWhole(const OnCpu& device, OpReqType req, const TBlob& piece,
                             const AxisView& view, int64_t begin, int64_t length,
                             const TBlob& whole);

// Whether an array of `layout` consists of its pieces along `axis` as AxisView describes: every
// piece is whole contiguous blocks, without padding. This holds for blocked channels if the
// channels of every piece are a multiple of the block, and always for channels last.
MXTRAIN_API bool CutsWhole(Layout layout, const TShape& whole, int axis,
                           std::span<const TShape> pieces);
// The first opaque layout offered in which every piece is whole; else plain.
MXTRAIN_API Layout CommonLayout(std::span<const std::optional<Layout>> offered, const TShape& whole,
                                int axis, std::span<const TShape> pieces);

}  // namespace mxtrain
