// SPDX-License-Identifier: Apache-2.0
// RNN by cuBLAS and a kernel for the gates of each step.
#include "mxtrain/operator/device_code.cuh"
#include "mxtrain/operators/dot/matrix_product.cuh"
#include "mxtrain/operators/rnn/rnn_loops.h"

MXTRAIN_OPERATOR(rnn_cuda, registry) {
  registry.AddKernel(
      mxtrain::LastKernel<mxtrain::OnGpu>("RNN", mxtrain::rnn::PlanLoops<mxtrain::OnGpu>));
}
