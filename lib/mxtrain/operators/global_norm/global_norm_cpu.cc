// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/global_norm/global_norm_loops.h"

MXTRAIN_OPERATOR(global_norm_cpu, registry) {
  mxtrain::global_norm::AddKernels<mxtrain::OnCpu>(registry);
}
