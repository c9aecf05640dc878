// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/slice_channel/slice_channel_loops.h"

MXTRAIN_OPERATOR(slice_channel_cpu, registry) {
  using namespace mxtrain;
  registry.AddKernel(
      LastKernel<OnCpu>("SliceChannel", slice_channel::MakePlan<OnCpu>, Takes::kEveryType));
}
