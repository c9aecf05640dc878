// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/identity.h"

MXTRAIN_OPERATOR(reshape_cpu, registry) {
  registry.AddKernel(mxtrain::IdentityKernel("Reshape"));
}
