// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/lrn/lrn_loops.h"

MXTRAIN_OPERATOR(lrn_cpu, registry) {
  using namespace mxtrain;
  registry.AddKernel(LastKernel<OnCpu>("LRN", lrn::MakePlan<OnCpu>));
}
