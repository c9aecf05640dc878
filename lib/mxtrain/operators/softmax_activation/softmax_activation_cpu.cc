// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/softmax_activation/softmax_activation_loops.h"

MXTRAIN_OPERATOR(softmax_activation_cpu, registry) {
  registry.AddKernel(mxtrain::softmax_activation::Kernel<mxtrain::OnCpu>());
}
