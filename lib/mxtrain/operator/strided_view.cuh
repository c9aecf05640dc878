// SPDX-License-Identifier: Apache-2.0
#pragma once
// strided_view.h and view_moves.h for arrays on the GPU.
#include "mxtrain/operator/kernel.cuh"
#include "mxtrain/operator/view_moves.h"

namespace mxtrain {

void CopyFromView(const OnGpu& device, OpReqType req, const TBlob& array, const StridedView& view,
                  const TBlob& dense);
void RunMove(const OnGpu& device, const MergedMove& move, const TBlob& from, const TBlob& to,
             bool add);
void RunFill(const OnGpu& device, const MergedMove& move, double value, const TBlob& to, bool add);

}  // namespace mxtrain
