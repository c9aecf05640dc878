// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/rows.cuh"
#include "mxtrain/operators/softmax_output/softmax_output_loops.h"

MXTRAIN_OPERATOR(softmax_output_cuda, registry) {
  using namespace mxtrain;
  registry.AddKernel(LastKernel<OnGpu>("SoftmaxOutput", softmax_output::MakePlan<OnGpu>));
}
