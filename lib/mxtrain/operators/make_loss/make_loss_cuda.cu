// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/identity.cuh"
#include "mxtrain/operator/rows.cuh"
#include "mxtrain/operators/make_loss/make_loss_loops.h"

MXTRAIN_OPERATOR(make_loss_cuda, registry) {
  mxtrain::make_loss::AddKernels<mxtrain::OnGpu>(registry);
}
