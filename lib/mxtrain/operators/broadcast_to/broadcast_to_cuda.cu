// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/identity.cuh"
#include "mxtrain/operator/rows.cuh"
#include "mxtrain/operator/strided_view.cuh"
#include "mxtrain/operators/broadcast_to/broadcast_to_loops.h"

MXTRAIN_OPERATOR(broadcast_to_cuda, registry) {
  mxtrain::broadcast_to::AddKernels<mxtrain::OnGpu>(registry);
}
