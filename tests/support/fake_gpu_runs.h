// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs of the trainer (training_run.h) on fake GPUs (fake_gpu.h).
#include "tests/support/fake_gpu.h"
#include "tests/support/training_run.h"

namespace mxtrain::test {

// What a rank with so many GPUs runs, but for its group and its sums between the GPUs.
inline RunSpec OnFakeGpus(int gpus) {
  RunSpec spec;
  spec.symbol = NoisyNet();
  spec.make_runtime = [](const RunSpec& s) { return NewFakeGpuRuntime(s.engine, s.seed); };
  spec.ctx = Context::gpu(0);
  for (int i = 0; i < gpus; ++i) spec.devices.push_back(Context::gpu(i));
  return spec;
}

// The same on two GPUs of one process.
inline RunSpec Alone(RunSpec spec) {
  spec.devices = OnFakeGpus(2).devices;
  spec.kvstore = "device";
  spec.new_communicator = NewFakeCommunicator;
  return spec;
}

}  // namespace mxtrain::test
