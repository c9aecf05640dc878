// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/strided_view.cuh"
#include "mxtrain/operators/transpose/transpose_loops.h"

MXTRAIN_OPERATOR(transpose_cuda, registry) {
  mxtrain::transpose::AddKernels<mxtrain::OnGpu>(registry);
}
