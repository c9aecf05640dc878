// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/make_loss/make_loss_loops.h"

MXTRAIN_OPERATOR(make_loss_cpu, registry) {
  mxtrain::make_loss::AddKernels<mxtrain::OnCpu>(registry);
}
