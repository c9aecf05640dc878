// SPDX-License-Identifier: Apache-2.0
#pragma once
// identity.h for arrays on the GPU.
#include "mxtrain/operator/identity.h"
#include "mxtrain/operator/kernel.cuh"

namespace mxtrain {

void CopyBlob(const OnGpu& device, OpReqType req, const TBlob& from, const TBlob& to);
void ZeroBlob(const OnGpu& device, OpReqType req, const TBlob& to);

}  // namespace mxtrain
