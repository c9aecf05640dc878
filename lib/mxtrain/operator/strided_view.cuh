// SPDX-License-Identifier: Apache-2.0
#pragma once
// strided_view.h and axis_pieces.h for arrays on the GPU.
#include "mxtrain/operator/axis_pieces.h"
#include "mxtrain/operator/kernel.cuh"
#include "mxtrain/operator/strided_view.h"

namespace mxtrain {

void CopyFromView(const OnGpu& device, OpReqType req, const TBlob& array, const StridedView& view,
                  const TBlob& dense);
void CopyToView(const OnGpu& device, OpReqType req, const TBlob& dense, const StridedView& view,
                const TBlob& array);
void ScatterView(const OnGpu& device, OpReqType req, const TBlob& dense, const StridedView& view,
                 const TBlob& array);

void CopyFromWhole(const OnGpu& device, OpReqType req, const TBlob& whole, const AxisView& view,
                   int64_t begin, int64_t length, const TBlob& piece);
void CopyToWhole(const OnGpu& device, OpReqType req, const TBlob& piece, const AxisView& view,
                 int64_t begin, int64_t length, const TBlob& whole);

}  // namespace mxtrain
