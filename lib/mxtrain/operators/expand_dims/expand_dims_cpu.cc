// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/expand_dims/expand_dims_loops.h"

MXTRAIN_OPERATOR(expand_dims_cpu, registry) {
  mxtrain::expand_dims::AddKernels<mxtrain::OnCpu>(registry);
}
