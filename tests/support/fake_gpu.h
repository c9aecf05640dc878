// SPDX-License-Identifier: Apache-2.0
#pragma once
// A fake GPU for machines without one: memory at addresses that the host cannot access, streams
// that are threads (fake_stream.h), and the CPU kernels as its kernels. Its work is asynchronous as
// on a real GPU and gives the CPU's bits. A host function that accesses its memory by mistake
// crashes the process at once.
#include <functional>
#include <limits>
#include <set>

#include "mxtrain/device/communicator.h"
#include "mxtrain/ndarray/runtime.h"
#include "mxtrain/operator/registry.h"

namespace mxtrain::test {

// By the clock of the stream: what the kernel of an operator takes for each element that it writes.
inline constexpr double kFakeSecondsPerElement = 1e-9;

// `memory`: bytes of each GPU.
std::unique_ptr<Backend> NewFakeGpuBackend(int64_t memory = std::numeric_limits<int64_t>::max());

// Adds in the order of the devices; float32, and bfloat16, rounded at each addition.
std::unique_ptr<Communicator> NewFakeCommunicator(std::span<const Context> devices);

// A Runtime without operators on fake GPUs with this much memory.
std::unique_ptr<Runtime> NewSmallGpuRuntime(int64_t memory);
// One thread, so that both devices add in the same order. The registry has a fake GPU kernel for
// each CPU kernel.
std::unique_ptr<Runtime> NewFakeGpuRuntime(const std::string& engine = "threaded",
                                           uint64_t seed = 3);
// Fake GPUs without kernels for these operators, and for those that `add` registers; one thread of
// the CPU.
std::unique_ptr<Runtime> NewFakeGpuRuntimeWithout(
    const std::set<std::string>& operators, RuntimeOptions options = {},
    const std::function<void(OperatorRegistry*)>& add = {});
// As NewFakeGpuRuntime with only the reference kernels, and a convolution that requires channels
// last, like cuDNN's.
std::unique_ptr<Runtime> NewChannelsLastRuntime();

// Simulated measurements: seconds of a kernel for a key of KernelChoices.
using FakeStopwatch = std::function<double(const std::string& key, const std::string& kernel)>;
// A fake GPU on which Activation and SoftmaxOutput choose one of the CPU kernels as cuDNN's
// convolution chooses an algorithm: the stored one, else by measuring, else the best by rank.
std::unique_ptr<Runtime> NewChoosingRuntime(FakeStopwatch seconds_of,
                                            const std::string& engine = "threaded",
                                            uint64_t seed = 3);

}  // namespace mxtrain::test
