// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/transpose/transpose_loops.h"

MXTRAIN_OPERATOR(transpose_cpu, registry) {
  mxtrain::transpose::AddKernels<mxtrain::OnCpu>(registry);
}
