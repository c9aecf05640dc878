// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/convolution/convolution_loops.h"

MXTRAIN_OPERATOR(convolution_cpu, registry) {
  mxtrain::convolution::AddReferenceKernels<mxtrain::OnCpu>(registry);
}
