// SPDX-License-Identifier: Apache-2.0
// Files of GGUF, byte by byte as the format's description has them.
#include "mxtrain/ndarray/gguf.h"

#include <doctest/doctest.h>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "tests/support/error_message.h"
#include "tests/support/small_nets.h"
#include "tests/support/temp_dir.h"

namespace mxtrain::test {
namespace {

// Bytes of numbers, the lowest first.
std::string GgufNumber(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i, value >>= 8) text += static_cast<char>(value & 0xFF);
  return text;
}
std::string GgufText(const std::string& text) {
  return GgufNumber(text.size(), 8) + text;
}

TEST_CASE("a GGUF file has the bytes that its description says") {
  const std::unique_ptr<Runtime> runtime = NewRuntime();
  const TempDir folder;
  const std::string path = folder.path() + "/small.gguf";
  GgufWriter writer;
  writer.Set("general.architecture", std::string("llama"));
  writer.Set("a", true);
  writer.Set("b", uint32_t{70000});
  writer.Set("c", 1.5F);
  writer.Set("d", std::vector<std::string>{"x", "yz"});
  writer.Set("e", std::vector<int32_t>{1, -3});
  // [2, 3] is written as 3, 2.
  writer.Add("m", NDArray::FromVector(*runtime, {2, 3}, {1, 2, 3, 4, 5, -0.5}), DType::kFloat16);
  writer.Add("v", NDArray::FromVector(*runtime, {2}, {1, -2}), DType::kFloat32);
  writer.Add("w", NDArray::FromVector(*runtime, {1}, {1}), DType::kBfloat16);
  writer.Write(path);

  std::string wanted = "GGUF" + GgufNumber(3, 4) + GgufNumber(3, 8) + GgufNumber(6, 8);
  wanted += GgufText("general.architecture") + GgufNumber(8, 4) + GgufText("llama");
  wanted += GgufText("a") + GgufNumber(7, 4) + GgufNumber(1, 1);
  wanted += GgufText("b") + GgufNumber(4, 4) + GgufNumber(70000, 4);
  wanted += GgufText("c") + GgufNumber(6, 4) + GgufNumber(0x3FC00000, 4);
  wanted += GgufText("d") + GgufNumber(9, 4) + GgufNumber(8, 4) + GgufNumber(2, 8) + GgufText("x") +
            GgufText("yz");
  wanted += GgufText("e") + GgufNumber(9, 4) + GgufNumber(5, 4) + GgufNumber(2, 8) +
            GgufNumber(1, 4) + GgufNumber(0xFFFFFFFD, 4);
  wanted += GgufText("m") + GgufNumber(2, 4) + GgufNumber(3, 8) + GgufNumber(2, 8) +
            GgufNumber(1, 4) + GgufNumber(0, 8);
  wanted +=
      GgufText("v") + GgufNumber(1, 4) + GgufNumber(2, 8) + GgufNumber(0, 4) + GgufNumber(32, 8);
  wanted +=
      GgufText("w") + GgufNumber(1, 4) + GgufNumber(1, 8) + GgufNumber(30, 4) + GgufNumber(64, 8);
  const auto pad = [&wanted] { wanted.resize((wanted.size() + 31) / 32 * 32, '\0'); };
  pad();
  for (const uint64_t half : {0x3C00, 0x4000, 0x4200, 0x4400, 0x4500, 0xB800})
    wanted += GgufNumber(half, 2);
  pad();
  wanted += GgufNumber(0x3F800000, 4) + GgufNumber(0xC0000000, 4);
  pad();
  wanted += GgufNumber(0x3F80, 2);
  pad();
  const std::string bytes = ReadFile(path);
  CHECK(bytes.size() == wanted.size());
  CHECK(bytes == wanted);
}

TEST_CASE("a GGUF file is not written with numbers that its type does not hold") {
  const std::unique_ptr<Runtime> runtime = NewRuntime();
  const TempDir folder;
  GgufWriter writer;
  writer.Add("large", NDArray::FromVector(*runtime, {2}, {1, 1e6}), DType::kFloat16);
  CHECK(MessageOf([&] { writer.Write(folder.path() + "/large.gguf"); }) ==
        "the array 'large' has 1000000, which float16 does not hold; take bfloat16 or float32");
  CHECK_THROWS_AS(ReadFile(folder.path() + "/large.gguf"), Error);
}

}  // namespace
}  // namespace mxtrain::test
