// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/dot/dot.h"

MXTRAIN_OPERATOR(dot_cpu, registry) {
  using namespace mxtrain;
  registry.AddKernel(LastKernel<OnCpu>("dot", dot::PlanProducts<dot::DotProperty, OnCpu>));
}
