// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/leaky_relu/leaky_relu_loops.h"

MXTRAIN_OPERATOR(leaky_relu_cpu, registry) {
  using namespace mxtrain;
  registry.AddKernel(LastKernel<OnCpu>("LeakyReLU", leaky_relu::MakePlan<OnCpu>));
}
