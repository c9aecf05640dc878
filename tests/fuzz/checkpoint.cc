// SPDX-License-Identifier: Apache-2.0
// Checkpoints, with lengths that fit the file and a checksum that fits the contents.
#include <cstring>

#include "mxtrain/base/file.h"
#include "mxtrain/train/checkpoint.h"
#include "tests/fuzz/fuzz_target.h"

namespace mxtrain::fuzz {
namespace {

constexpr size_t kFrame = 32;  // magic, two lengths, checksum

uint64_t NumberAt(const std::string& bytes, size_t at) {
  uint64_t number;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

void PutNumber(uint64_t number, size_t at, std::string* bytes) {
  std::memcpy(bytes->data() + at, &number, sizeof number);
}

std::string Repaired(std::string bytes) {
  if (bytes.size() < kFrame) return bytes;
  bytes.replace(0, 8, "MXTRAIN1");
  const uint64_t inside = bytes.size() - kFrame, header = std::min(NumberAt(bytes, 8), inside);
  PutNumber(header, 8, &bytes);
  PutNumber(inside - header, 16 + header, &bytes);
  PutNumber(Checksum(std::string_view(bytes).substr(0, bytes.size() - 8)), bytes.size() - 8,
            &bytes);
  return bytes;
}

}  // namespace

std::vector<std::string> LargeInputs() {
  std::string header = "{";
  for (int i = 0; i < 100'000; ++i) header += format("\"k{}\":0,", i);
  header += "\"format\":1}";
  std::string bytes(16, '\0');
  PutNumber(header.size(), 8, &bytes);
  return {bytes + header + std::string(16, '\0')};
}

}  // namespace mxtrain::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mxtrain;
  using namespace mxtrain::fuzz;
  const std::string path = Scratch().path("checkpoint");
  Scratch().Write("checkpoint", Repaired(std::string(TextOf(data, size))));
  MayRefuse([&] { PeekModel(path); });
  MayRefuse([&] { PeekState(path); });
  MayRefuse([&] { LoadCheckpoint(NaiveRuntime(), path); });
  return 0;
}
