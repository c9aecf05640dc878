// SPDX-License-Identifier: Apache-2.0
// Array files of MXNet (.params).
#include "mxtrain/ndarray/ndarray.h"
#include "tests/fuzz/fuzz_target.h"

namespace mxtrain::fuzz {

std::vector<std::string> LargeInputs() {
  // As many arrays without a shape as fit.
  std::string bytes("\x12\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x04\0\0\0\0\0", 24);
  return {bytes + std::string(4 * 0x40000 + 8, '\0')};
}

}  // namespace mxtrain::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mxtrain;
  using namespace mxtrain::fuzz;
  MayRefuse([&] { DeserializeArrays(NaiveRuntime(), TextOf(data, size), "input"); });
  return 0;
}
