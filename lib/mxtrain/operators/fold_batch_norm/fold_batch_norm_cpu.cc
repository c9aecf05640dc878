// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/fold_batch_norm/fold_batch_norm_loops.h"

MXTRAIN_OPERATOR(fold_batch_norm_cpu, registry) {
  using namespace mxtrain;
  registry.AddKernel(LastKernel<OnCpu>("_FoldBatchNorm", fold_batch_norm::MakePlan<OnCpu>));
}
