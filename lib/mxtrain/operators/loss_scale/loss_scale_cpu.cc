// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/loss_scale/loss_scale_loops.h"

MXTRAIN_OPERATOR(loss_scale_cpu, registry) {
  mxtrain::loss_scale::AddKernels<mxtrain::OnCpu>(registry);
}
