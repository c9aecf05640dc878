// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/random_sample/random_sample_loops.h"

MXTRAIN_OPERATOR(random_sample_cpu, registry) {
  mxtrain::random_sample::AddKernels<mxtrain::OnCpu>(registry);
}
