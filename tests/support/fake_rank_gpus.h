// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sums between the fake GPUs (fake_gpu.h) of several ranks, which are threads or processes.
#include <memory>

#include "mxtrain/device/communicator.h"

namespace mxtrain::test {

// Where the host finds memory of a fake GPU, as its kernels do.
void* HostAddressOf(void* on_gpu);

// A factory for the rank of this group; the GPUs of all ranks add in one order.
CommunicatorFactory FakeRankCommunicators(std::shared_ptr<ProcessGroup> group);

}  // namespace mxtrain::test
