// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/identity.cuh"

MXTRAIN_OPERATOR(flatten_cuda, registry) {
  registry.AddKernel(mxtrain::IdentityKernel<mxtrain::OnGpu>("Flatten"));
}
