// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/identity.cuh"
#include "mxtrain/operators/regression_output/regression_output_loops.h"

MXTRAIN_OPERATOR(regression_output_cuda, registry) {
  mxtrain::regression_output::AddKernels<mxtrain::OnGpu>(registry);
}
