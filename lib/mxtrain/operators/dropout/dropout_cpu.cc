// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/dropout/dropout_loops.h"

MXTRAIN_OPERATOR(dropout_cpu, registry) {
  using namespace mxtrain;
  registry.AddKernel(LastKernel<OnCpu>("Dropout", dropout::MakePlan<OnCpu>));
}
