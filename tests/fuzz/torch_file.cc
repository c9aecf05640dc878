// SPDX-License-Identifier: Apache-2.0
// PyTorch's files, as they are and, if they are zip archives, with correct checksums.
#include "mxtrain/ndarray/torch_file.h"

#include <algorithm>
#include <cstring>

#include "mxtrain/base/file.h"
#include "tests/fuzz/fuzz_target.h"

namespace mxtrain::fuzz {
namespace {

constexpr std::string_view kCentral("PK\x01\x02", 4);
constexpr size_t kCentralBytes = 46, kLocalBytes = 30;

template <typename T>
T Get(std::string_view bytes, size_t at) {
  T value{};
  if (at <= bytes.size() && sizeof value <= bytes.size() - at)
    std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// The directory with the checksums of what it names.
void Repair(std::string* zip) {
  for (size_t at = zip->find(kCentral); at != std::string::npos; at = zip->find(kCentral, at + 1)) {
    if (zip->size() - at < kCentralBytes) return;
    const auto begin = Get<uint32_t>(*zip, at + 42), size = Get<uint32_t>(*zip, at + 20);
    const size_t data = size_t{begin} + kLocalBytes + Get<uint16_t>(*zip, begin + size_t{26}) +
                        Get<uint16_t>(*zip, begin + size_t{28});
    if (data > zip->size()) continue;
    const uint32_t crc = Crc32(std::string_view(*zip).substr(data, size));
    std::memcpy(zip->data() + at + 16, &crc, sizeof crc);
  }
}

void Read(std::string_view bytes) {
  MayRefuse([&] { DeserializeTorchFile(NaiveRuntime(), bytes, "input"); });
}

}  // namespace

std::vector<std::string> LargeInputs() {
  const std::string begin =
      "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03.\x80\x02}."
      "\x80\x02";
  std::string memo = "}", pairs = "ccollections\nOrderedDict\nq\1](", calls;
  for (uint32_t i = 0; i < 100'000; ++i) {
    const uint32_t place = i * 42'043;
    memo.append("r").append(reinterpret_cast<const char*>(&place), sizeof place);
  }
  for (int i = 0; i < 30'000; ++i) {
    pairs += "U\1aN\x86";
    calls += "h\1h\2R";
  }
  // One long key of a storage, in each of many references.
  std::string key = "X" + std::string("\x40\x42\x0f\x00", 4) + std::string(1'000'000, '7');
  std::string references = "(U\7storagectorch\nFloatStorage\n" + key + "U\3cpuK\1tq\0(";
  references[references.size() - 2] = '\0';
  for (int i = 0; i < 100'000; ++i) references += std::string("h\0Q", 3);
  // Objects of one class, items in an object, keys that are one long text.
  std::string objects = "cmy\nNew\nq\1(", fields = "cmy\nNew\n)R", keys = key + "q\1" + "0}(";
  for (int i = 0; i < 100'000; ++i) {
    objects += "h\1)R";
    fields += "NNs";
    keys += "h\1N";
  }
  // Lists in lists; marks; a large memo; dicts that would each copy one list.
  return {begin + std::string(300'000, ']') + std::string(299'999, 'a') + ".",
          begin + std::string(300'000, '(') + ".",
          begin + memo + ".",
          begin + pairs + "e\x85q\2R" + calls + ".",
          begin + references + "t.",
          begin + objects + "t.",
          begin + fields + ".",
          begin + keys + "u."};
}

}  // namespace mxtrain::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mxtrain::fuzz;
  std::string bytes(TextOf(data, size));
  Read(bytes);
  if (!bytes.starts_with("PK")) return 0;
  Repair(&bytes);
  Read(bytes);
  return 0;
}
