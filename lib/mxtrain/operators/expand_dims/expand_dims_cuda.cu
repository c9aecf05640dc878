// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/identity.cuh"
#include "mxtrain/operators/expand_dims/expand_dims_loops.h"

MXTRAIN_OPERATOR(expand_dims_cuda, registry) {
  mxtrain::expand_dims::AddKernels<mxtrain::OnGpu>(registry);
}
