// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/concat/concat_loops.h"

MXTRAIN_OPERATOR(concat_cpu, registry) {
  using namespace mxtrain;
  registry.AddKernel(LastKernel<OnCpu>("Concat", concat::MakePlan<OnCpu>, Takes::kEveryType));
}
