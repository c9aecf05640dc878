// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/identity.cuh"

MXTRAIN_OPERATOR(reshape_cuda, registry) {
  registry.AddKernel(mxtrain::IdentityKernel<mxtrain::OnGpu>("Reshape"));
}
