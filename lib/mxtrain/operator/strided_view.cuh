// SPDX-License-Identifier: Apache-2.0
#pragma once
// view_moves.h for arrays on the GPU.
#include "mxtrain/operator/kernel.cuh"
#include "mxtrain/operator/view_moves.h"

namespace mxtrain {

void RunMove(const OnGpu& device, const MergedMove& move, const TBlob& from, const TBlob& to,
             bool add);
void RunFill(const OnGpu& device, const MergedMove& move, double value, const TBlob& to, bool add);

}  // namespace mxtrain
