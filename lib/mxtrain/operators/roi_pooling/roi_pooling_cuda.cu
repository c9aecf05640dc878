// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/rows.cuh"
#include "mxtrain/operators/roi_pooling/roi_pooling_loops.h"

MXTRAIN_OPERATOR(roi_pooling_cuda, registry) {
  using namespace mxtrain;
  registry.AddKernel(LastKernel<OnGpu>("ROIPooling", roi_pooling::MakePlan<OnGpu>));
}
