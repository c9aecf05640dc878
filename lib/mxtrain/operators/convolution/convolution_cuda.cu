// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/rows.cuh"
#include "mxtrain/operators/convolution/convolution_loops.h"

MXTRAIN_OPERATOR(convolution_cuda, registry) {
  mxtrain::convolution::AddReferenceKernels<mxtrain::OnGpu>(registry);
}
