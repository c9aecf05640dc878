// SPDX-License-Identifier: Apache-2.0
// The reference loops of RNN.
#include "mxtrain/operators/rnn/rnn_loops.h"

MXTRAIN_OPERATOR(rnn_cpu, registry) {
  registry.AddKernel(
      mxtrain::LastKernel<mxtrain::OnCpu>("RNN", mxtrain::rnn::PlanLoops<mxtrain::OnCpu>));
}
