#pragma once
// A GPU for machines that have none: memory at addresses that the host cannot touch, streams that are threads (fake_stream.h), and the
// kernels of the CPU as its kernels. What runs on it is asynchronous as on a real one, and gives the CPU's bits; a function of the host that
// reads or writes its memory by mistake ends the process at once.
#include <functional>
#include <limits>

#include "mxtrain/device/communicator.h"
#include "mxtrain/ndarray/runtime.h"
#include "mxtrain/operator/registry.h"

namespace mxtrain::test {

// `memory`: bytes of each GPU.
std::unique_ptr<Backend> NewFakeGpuBackend(int64_t memory = std::numeric_limits<int64_t>::max());

// Adds in the order of the devices; float32 alone.
std::unique_ptr<Communicator> NewFakeCommunicator(std::span<const Context> devices);

// A Runtime of no operators on fake GPUs of so much memory.
std::unique_ptr<Runtime> NewSmallGpuRuntime(int64_t memory);
// One thread, so that both devices add in the same order. The registry has a kernel of the fake GPU for each kernel of the CPU.
std::unique_ptr<Runtime> NewFakeGpuRuntime(const std::string& engine = "threaded", uint64_t seed = 3);
// The same with the reference kernels alone, and a convolution that wants its arrays channels last, as cuDNN's does.
std::unique_ptr<Runtime> NewChannelsLastRuntime();

// Plays the clock of measurements: seconds that the kernel of a kernel takes, for a key of KernelChoices.
using FakeStopwatch = std::function<double(const std::string& key, const std::string& kernel)>;
// A fake GPU on which Activation and SoftmaxOutput take one of the CPU's kernels as cuDNN's convolution takes an algorithm: the kept one, else by
// measuring, else the best by rank.
std::unique_ptr<Runtime> NewChoosingRuntime(FakeStopwatch seconds_of, const std::string& engine = "threaded", uint64_t seed = 3);

}  // namespace mxtrain::test
