// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/softmax_output/softmax_output_loops.h"

MXTRAIN_OPERATOR(softmax_output_cpu, registry) {
  using namespace mxtrain;
  registry.AddKernel(LastKernel<OnCpu>("SoftmaxOutput", softmax_output::MakePlan<OnCpu>));
}
