// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/roi_pooling/roi_pooling_loops.h"

MXTRAIN_OPERATOR(roi_pooling_cpu, registry) {
  using namespace mxtrain;
  registry.AddKernel(LastKernel<OnCpu>("ROIPooling", roi_pooling::MakePlan<OnCpu>));
}
