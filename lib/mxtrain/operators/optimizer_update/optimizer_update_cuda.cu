// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/rows.cuh"
#include "mxtrain/operators/optimizer_update/optimizer_update_loops.h"

MXTRAIN_OPERATOR(optimizer_update_cuda, registry) {
  mxtrain::optimizer_update::AddKernels<mxtrain::OnGpu>(registry);
}
