// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/identity.h"

MXTRAIN_OPERATOR(flatten_cpu, registry) {
  registry.AddKernel(mxtrain::IdentityKernel("Flatten"));
}
