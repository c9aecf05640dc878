// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/pooling/pooling_loops.h"

MXTRAIN_OPERATOR(pooling_cpu, registry) {
  using namespace mxtrain;
  registry.AddKernel(LastKernel<OnCpu>("Pooling", pooling::MakePlan<OnCpu>));
}
