// SPDX-License-Identifier: Apache-2.0
// The cases of all operators on a GPU: compared with the references in double, for every request
// kind.
#define DOCTEST_CONFIG_IMPLEMENT
#include <set>

#include "tests/gpu/run_tests.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

// Without kernels are those that have none on the CPU either (composites), four whose parts a GPU
// computes one by one, one that runs on the CPU, and chains, which the fusion pass then does not
// make.
TEST_CASE("every operator of the CPU has a kernel, but for some") {
  const std::set<std::string> without = {"EmbeddingBag", "GroupNorm", "InstanceNorm", "shuffle",
                                         "_ElementwiseChain"};
  const OperatorRegistry& registry = TestRegistry();
  for (const std::string& name : registry.Names()) {
    CAPTURE(name);
    const bool none = without.contains(name) || registry.Kernels(name, DeviceType::kCPU).empty();
    CHECK(registry.Kernels(name, DeviceType::kGPU).empty() == none);
  }
}

}  // namespace
}  // namespace mxtrain::test

int main(int argc, char** argv) {
  using namespace mxtrain;
  const std::unique_ptr<Backend> gpu = NewGpuBackend();
  if (gpu->DeviceCount() > 0)
    test::TestOn(Context::gpu(0), BuiltinOperators(DeviceType::kGPU), gpu.get());
  return test::RunGpuTests(argc, argv);
}
