// SPDX-License-Identifier: Apache-2.0
// The cases of all operators on a GPU: compared with the references in double, for every request
// kind.
#define DOCTEST_CONFIG_IMPLEMENT
#include "tests/gpu/run_tests.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

// The fusion pass does not fuse a chain if it has no kernel; composites have none anywhere.
TEST_CASE("every operator except chains that has a kernel on the CPU has one") {
  const OperatorRegistry& registry = TestRegistry();
  for (const std::string& name : registry.Names()) {
    CAPTURE(name);
    const bool none =
        name == "_ElementwiseChain" || registry.Kernels(name, DeviceType::kCPU).empty();
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
