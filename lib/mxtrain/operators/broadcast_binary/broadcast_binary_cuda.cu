// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/rows.cuh"
#include "mxtrain/operators/broadcast_binary/broadcast_binary_loops.h"

MXTRAIN_OPERATOR(broadcast_binary_cuda, registry) {
  mxtrain::broadcast_binary::AddKernels<mxtrain::OnGpu>(registry);
}
