// SPDX-License-Identifier: Apache-2.0
// Safetensors, with a length of the header that fits the file.
#include "mxtrain/ndarray/safetensors.h"

#include <algorithm>
#include <cstring>

#include "tests/fuzz/fuzz_target.h"

namespace mxtrain::fuzz {
namespace {

std::string FileOf(const std::string& header, const std::string& arrays) {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + header + arrays;
}

}  // namespace

std::vector<std::string> LargeInputs() {
  std::string over = "{", many = "{";
  for (int i = 0; i < 3000; ++i)
    over += format(R"("a{}":{{"dtype":"U8","shape":[1048576],"data_offsets":[0,1048576]}},)", i);
  for (int i = 0; i < 50'000; ++i)
    many += format(R"("a{}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}},)", i);
  over.back() = many.back() = '}';
  return {FileOf(over, std::string(1 << 20, '\0')), FileOf(many, "")};
}

}  // namespace mxtrain::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mxtrain;
  using namespace mxtrain::fuzz;
  std::string bytes(TextOf(data, size));
  uint64_t length = 0;
  if (bytes.size() >= sizeof length) {
    std::memcpy(&length, bytes.data(), sizeof length);
    length = std::min<uint64_t>(length, bytes.size() - sizeof length);
    std::memcpy(bytes.data(), &length, sizeof length);
  }
  MayRefuse([&] { DeserializeSafetensors(NaiveRuntime(), bytes, "input"); });
  return 0;
}
