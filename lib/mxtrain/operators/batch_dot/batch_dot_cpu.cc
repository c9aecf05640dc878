// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/batch_dot/batch_dot.h"

MXTRAIN_OPERATOR(batch_dot_cpu, registry) {
  using namespace mxtrain;
  registry.AddKernel(
      LastKernel<OnCpu>("batch_dot", dot::PlanProducts<dot::BatchDotProperty, OnCpu>));
}
