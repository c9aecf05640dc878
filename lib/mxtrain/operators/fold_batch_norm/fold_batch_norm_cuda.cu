// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/kernel.cuh"
#include "mxtrain/operators/fold_batch_norm/fold_batch_norm_loops.h"

MXTRAIN_OPERATOR(fold_batch_norm_cuda, registry) {
  using namespace mxtrain;
  registry.AddKernel(LastKernel<OnGpu>("_FoldBatchNorm", fold_batch_norm::MakePlan<OnGpu>));
}
