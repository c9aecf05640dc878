// SPDX-License-Identifier: Apache-2.0
// The index of safetensors in several files: no name that it accepts leaves its folder.
#include <filesystem>

#include "mxtrain/base/error.h"
#include "mxtrain/ndarray/safetensors_shards.h"
#include "tests/fuzz/fuzz_target.h"

namespace mxtrain::fuzz {

std::vector<std::string> LargeInputs() {
  std::string same = R"({"weight_map":{)", many = same;
  for (int i = 0; i < 50'000; ++i) {
    same += format(R"("a{}":"x.safetensors",)", i);
    many += format(R"("a{0}":"{0}.safetensors",)", i);
  }
  same.back() = many.back() = '}';
  return {same + "}", many + "}", R"({"weight_map":)" + std::string(20'000, '[')};
}

}  // namespace mxtrain::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mxtrain;
  using namespace mxtrain::fuzz;
  MayRefuse([&] {
    for (const std::string& name : ShardsOf(TextOf(data, size), "input"))
      MXTRAIN_ASSERT(std::filesystem::path(name).filename() == name && name != "..");
  });
  return 0;
}
