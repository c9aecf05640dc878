// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/activation/activation_loops.h"

MXTRAIN_OPERATOR(activation_cpu, registry) {
  registry.AddKernel(mxtrain::ActivationKernel<mxtrain::OnCpu>());
}
