// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/elementwise.cuh"
#include "mxtrain/operator/identity.cuh"
#include "mxtrain/operators/loss_scale/loss_scale_loops.h"

MXTRAIN_OPERATOR(loss_scale_cuda, registry) {
  mxtrain::loss_scale::AddKernels<mxtrain::OnGpu>(registry);
}
