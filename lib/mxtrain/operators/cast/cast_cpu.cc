// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/cast/cast_loops.h"

MXTRAIN_OPERATOR(cast_cpu, registry) {
  registry.AddKernel(mxtrain::CastKernel<mxtrain::OnCpu>());
}
