// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/batch_norm/batch_norm_loops.h"

MXTRAIN_OPERATOR(batch_norm_cpu, registry) {
  mxtrain::batch_norm::AddKernels<mxtrain::OnCpu>(registry);
}
