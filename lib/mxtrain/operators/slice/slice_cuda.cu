// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/strided_view.cuh"
#include "mxtrain/operators/slice/slice_loops.h"

MXTRAIN_OPERATOR(slice_cuda, registry) {
  mxtrain::slice::AddKernels<mxtrain::OnGpu>(registry);
}
