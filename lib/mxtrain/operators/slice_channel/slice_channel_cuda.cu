// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/strided_view.cuh"
#include "mxtrain/operators/slice_channel/slice_channel_loops.h"

MXTRAIN_OPERATOR(slice_channel_cuda, registry) {
  using namespace mxtrain;
  registry.AddKernel(
      LastKernel<OnGpu>("SliceChannel", slice_channel::MakePlan<OnGpu>, Takes::kEveryType));
}
