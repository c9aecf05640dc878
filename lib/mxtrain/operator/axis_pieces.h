#pragma once
// Copies between an array and pieces of it along an axis: what Concat and SliceChannel are, each the backward of the other. All arrays lie
// alike: plain, or in a layout that CommonLayout has found.
#include <optional>
#include <span>

#include "mxtrain/device/blocked_layout.h"
#include "mxtrain/operator/kernel.h"

namespace mxtrain {

// An array seen as [outer, length, inner] around an axis, as it is stored; a piece is the columns [begin, begin + length of the piece).
struct AxisView {
  int64_t outer = 0, length = 0, inner = 0;
  AxisView() = default;
  AxisView(const TShape& shape, int axis, Layout layout = {})
      : outer(shape.Product(0, axis)), length(shape[axis]), inner(shape.Product(axis + 1, shape.ndim())) {
    if (axis != 1 || !ChannelsLast(layout)) return;
    outer *= inner;
    inner = 1;
  }
};

// piece = whole[:, begin : begin + length, :] or += it, and the other way round. `length` is that of the piece. strided_view.cuh has
// these functions for OnGpu.
MXTRAIN_API void CopyFromWhole(const OnCpu& device, OpReqType req, const TBlob& whole, const AxisView& view, int64_t begin, int64_t length,
                               const TBlob& piece);
MXTRAIN_API void CopyToWhole(const OnCpu& device, OpReqType req, const TBlob& piece, const AxisView& view, int64_t begin, int64_t length,
                             const TBlob& whole);

// Does an array of `layout` consist of its pieces along `axis` as AxisView has it: every piece whole blocks that lie together, nothing
// padded? Blocks of channels do when the channels of every piece are a multiple of the block; channels that come last always do.
MXTRAIN_API bool CutsWhole(Layout layout, const TShape& whole, int axis, std::span<const TShape> pieces);
// The first opaque layout that is offered and cuts whole, else plain.
MXTRAIN_API Layout CommonLayout(std::span<const std::optional<Layout>> offered, const TShape& whole, int axis,
                                std::span<const TShape> pieces);

}  // namespace mxtrain
