// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/slice/slice_loops.h"

MXTRAIN_OPERATOR(slice_cpu, registry) {
  mxtrain::slice::AddKernels<mxtrain::OnCpu>(registry);
}
