// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <numeric>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/device/blocked_layout.h"
#include "mxtrain/ndarray/ndarray.h"
#include "tests/support/allocation_count.h"
#include "tests/support/naive_runtime.h"

namespace mxtrain {
namespace {

using test::NaiveOptions;

// "12 01 00" -> bytes; "00*8" repeats.
std::string Hex(std::string_view text) {
  std::string bytes;
  while (!text.empty()) {
    const size_t space = std::min(text.find(' '), text.size());
    const std::string word(text.substr(0, space));
    text.remove_prefix(std::min(space + 1, text.size()));
    if (word.empty()) continue;
    const size_t star = word.find('*');
    const size_t count = star == std::string::npos ? 1 : std::stoul(word.substr(star + 1));
    bytes.append(count, static_cast<char>(std::stoul(word.substr(0, star), nullptr, 16)));
  }
  return bytes;
}

// One array "arg:w" of shape (1, 2) with the values 1, 2, as each version of MXNet writes it.
const std::string kHead = Hex("12 01 00*6 00*8 01 00*7");
const std::string kDeviceTypeData = Hex("01 00*3 00*4 00*4 00 00 80 3f 00 00 00 40");
const std::string kNames = Hex("01 00*7 05 00*7 61 72 67 3a 77");
const std::string kV0File = kHead + Hex("02 00*3 01 00*3 02 00*3") + kDeviceTypeData + kNames;
const std::string kV1File =
    kHead + Hex("c8 fa 93 f9 02 00*3 01 00*7 02 00*7") + kDeviceTypeData + kNames;
const std::string kV2File =
    kHead + Hex("c9 fa 93 f9 00*4 02 00*3 01 00*7 02 00*7") + kDeviceTypeData + kNames;
const std::string kV3File =
    kHead + Hex("ca fa 93 f9 00*4 02 00*3 01 00*7 02 00*7") + kDeviceTypeData + kNames;
constexpr size_t kV2TypeAt = 24 + 28 + 8;

std::string ErrorOfArrays(Runtime& runtime, const std::string& bytes) {
  try {
    DeserializeArrays(runtime, bytes, "net.params");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kData);
    return error.what();
  }
  return "";
}

std::string Patched(std::string bytes, size_t at, std::string_view patch) {
  return bytes.replace(at, patch.size(), patch);
}

TEST_CASE("files of every version are read") {
  Runtime runtime(NaiveOptions(), nullptr);
  CHECK(kV0File.size() == 77);
  CHECK(kV1File.size() == 89);
  CHECK(kV2File.size() == 93);
  for (const std::string& file : {kV0File, kV1File, kV2File, kV3File}) {
    const NamedArrays loaded = DeserializeArrays(runtime, file, "net.params");
    REQUIRE(loaded.arrays.size() == 1);
    CHECK(loaded.names == std::vector<std::string>{"arg:w"});
    CHECK(loaded.arrays[0].shape() == TShape{1, 2});
    CHECK(loaded.arrays[0].who() == "arg:w");
    CHECK(loaded.arrays[0].ToVector() == std::vector<float>{1, 2});
  }
}

TEST_CASE("version 2 is written, byte for byte") {
  Runtime runtime(NaiveOptions(), nullptr);
  CHECK(SerializeArrays({{"arg:w"}, {NDArray::FromVector(runtime, {1, 2}, {1, 2})}}) == kV2File);
  CHECK(SerializeArrays({}) == Hex("12 01 00*6 00*8 00*8 00*8"));
}

TEST_CASE("every type, layout and odd shape round-trips") {
  Runtime runtime(NaiveOptions(), nullptr);
  NamedArrays saved;
  for (DType type : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBfloat16,
                     DType::kUint8, DType::kInt32, DType::kInt64}) {
    saved.arrays.emplace_back(runtime, TShape{2, 9, 1, 3}, type).Fill(5);
  }
  std::vector<float> values(54);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const Layout blocked = runtime.backend(Context::cpu()).Intern(BlockedLayout::FromName("aBcd8b"));
  saved.arrays.push_back(NDArray::FromVector(runtime, {2, 9, 1, 3}, values).ToLayout(blocked));
  saved.arrays.push_back(NDArray::Zeros(runtime, TShape::Parse("()")));
  saved.arrays.push_back(NDArray::Zeros(runtime, {3, 0}));
  saved.arrays.emplace_back();
  const NamedArrays loaded = DeserializeArrays(runtime, SerializeArrays(saved), "x");
  REQUIRE(loaded.arrays.size() == saved.arrays.size());
  CHECK(loaded.names.empty());
  for (size_t i = 0; i + 1 < saved.arrays.size(); ++i) {
    CHECK(loaded.arrays[i].shape() == saved.arrays[i].shape());
    CHECK(loaded.arrays[i].dtype() == saved.arrays[i].dtype());
    CHECK(loaded.arrays[i].layout().plain());
    CHECK(loaded.arrays[i].ToVector() == saved.arrays[i].ToVector());
  }
  CHECK(loaded.arrays.back().empty());
}

TEST_CASE("a record without a shape is an empty array in every version") {
  Runtime runtime(NaiveOptions(), nullptr);
  for (const char* record :
       {"00*4", "c8 fa 93 f9 00*4", "c9 fa 93 f9 00*4 00*4", "ca fa 93 f9 00*4 ff*4"}) {
    const NamedArrays loaded = DeserializeArrays(runtime, kHead + Hex(record) + Hex("00*8"), "x");
    REQUIRE(loaded.arrays.size() == 1);
    CHECK(loaded.arrays[0].empty());
  }
}

TEST_CASE("a file truncated anywhere is an error that says where") {
  Runtime runtime(NaiveOptions(), nullptr);
  for (const std::string& file : {kV0File, kV1File, kV2File, kV3File}) {
    for (size_t size = 0; size < file.size(); ++size) {
      CAPTURE(size);
      CHECK_FALSE(ErrorOfArrays(runtime, file.substr(0, size)).empty());
    }
  }
  CHECK(ErrorOfArrays(runtime, kV2File.substr(0, 70)) ==
        "net.params cannot be read at byte 64: an array of float32 [1, 2] is larger than the rest "
        "of the file (6 bytes)");
  CHECK(ErrorOfArrays(runtime, kV2File.substr(0, 90)) ==
        "net.params cannot be read at byte 88: the file ends inside a name");
}

TEST_CASE("damage is recognised and allocates nothing") {
  Runtime runtime(NaiveOptions(), nullptr);
  const int64_t before = runtime.storage().GetStats(Context::cpu()).allocations;
  for (int bit = 0; bit < 32; ++bit) {  // of the number of dimensions
    for (const auto& [file, at] :
         {std::pair{kV0File, 24}, {kV1File, 28}, {kV2File, 32}, {kV3File, 32}}) {
      std::string damaged = file;
      damaged[static_cast<size_t>(at) + static_cast<size_t>(bit / 8)] ^=
          static_cast<char>(1 << bit % 8);
      CAPTURE(bit);
      CHECK_FALSE(ErrorOfArrays(runtime, damaged).empty());
    }
  }
  CHECK(ErrorOfArrays(runtime, Patched(kV2File, 0, "PK")) ==
        "net.params is not a parameter file: it does not begin with the number 0x112");
  CHECK(ErrorOfArrays(runtime, Patched(kV2File, 16, Hex("ff*8"))) ==
        "net.params cannot be read at byte 24: 18446744073709551615 arrays are more than the file "
        "can hold");
  CHECK(ErrorOfArrays(runtime, Patched(kV2File, 24, Hex("cb"))) ==
        "net.params cannot be read at byte 28: 0xF993FACB does not start an array of a known "
        "version (the file is damaged, or from a newer system)");
  CHECK(ErrorOfArrays(runtime, Patched(kV2File, 28, Hex("01"))) ==
        "net.params cannot be read at byte 32: a sparse array (row_sparse); convert it with "
        "tostype('default') before saving");
  CHECK(ErrorOfArrays(runtime, Patched(kV2File, 28, Hex("07"))) ==
        "net.params cannot be read at byte 32: 7 is not a storage type");
  CHECK(ErrorOfArrays(runtime, Patched(kV2File, 32, Hex("09"))) ==
        "net.params cannot be read at byte 36: an array of 9 dimensions; at most 8 are supported");
  CHECK(ErrorOfArrays(runtime, Patched(kV2File, 36, Hex("ff*8"))) ==
        "net.params cannot be read at byte 44: a dimension of -1");
  // 2^62 x 2^62: the product overflows.
  CHECK(ErrorOfArrays(runtime, Patched(kV2File, 36, Hex("00*7 40 00*7 40"))) ==
        "net.params cannot be read at byte 64: an array of float32 [4611686018427387904, "
        "4611686018427387904] is larger than the rest of the "
        "file (29 bytes)");
  CHECK(ErrorOfArrays(runtime, Patched(kV2File, 72, Hex("02"))) ==
        "net.params cannot be read at byte 80: 2 names for 1 arrays");
  CHECK(ErrorOfArrays(runtime, kV2File + "x") ==
        "net.params cannot be read at byte 93: 1 bytes follow the last name");
  CHECK(runtime.storage().GetStats(Context::cpu()).allocations == before);
}

// Records without an array take 4 bytes in the file, and once took 280 in memory.
TEST_CASE("a file of countless empty records is refused before they are read") {
  Runtime runtime(NaiveOptions(), nullptr);
  const auto file_of = [](uint64_t arrays) {
    const std::string head =
        Hex("12 01 00*6 00*8") + std::string(reinterpret_cast<const char*>(&arrays), sizeof arrays);
    return head + std::string(arrays * sizeof(uint32_t) + sizeof(uint64_t), '\0');
  };
  const std::string large = file_of(uint64_t{1} << 22);
  test::PeakBytes peak;
  CHECK(ErrorOfArrays(runtime, large) ==
        "net.params cannot be read at byte 24: 4194304 arrays; at most 65536 are supported");
  CHECK(peak.value() < 1 << 20);
  CHECK(DeserializeArrays(runtime, file_of(65536), "net.params").arrays.size() == 65536);
  const NamedArrays many{{}, std::vector<NDArray>(65537)};
  CHECK_THROWS_WITH_AS(SerializeArrays(many),
                       "65537 arrays are too many for one file; at most 65536 are supported",
                       Error);
}

TEST_CASE("unsupported element types of the format are named") {
  Runtime runtime(NaiveOptions(), nullptr);
  const std::pair<const char*, const char*> types[] = {{"05", "int8"},   {"07", "bool"},
                                                       {"08", "int16"},  {"09", "uint16"},
                                                       {"0a", "uint32"}, {"0b", "uint64"}};
  for (const auto& [flag, name] : types) {
    CHECK(ErrorOfArrays(runtime, Patched(kV2File, kV2TypeAt, Hex(flag))) ==
          format("net.params cannot be read at byte 64: an array of type {}, which mxtrain does "
                 "not support; save it as int32 or float32",
                 name));
  }
  CHECK(ErrorOfArrays(runtime, Patched(kV2File, kV2TypeAt, Hex("0d"))) ==
        "net.params cannot be read at byte 64: 13 is not an element type");
  CHECK(ErrorOfArrays(runtime, Patched(kV2File, kV2TypeAt, Hex("ff*4"))) ==
        "net.params cannot be read at byte 64: -1 is not an element type");
  CHECK(ErrorOfArrays(runtime, Patched(kV2File, kV2TypeAt, Hex("00 01"))) ==
        "net.params cannot be read at byte 64: 256 is not an element type");
}

TEST_CASE("arrays go through files") {
  Runtime runtime(NaiveOptions(), nullptr);
  const std::string path =
      (std::filesystem::temp_directory_path() / ("mxtrain_serialize_" + std::to_string(getpid())))
          .string();
  SaveArrays(path, {{"arg:w"}, {NDArray::FromVector(runtime, {1, 2}, {1, 2})}});
  CHECK(ReadFile(path) == kV2File);
  CHECK(LoadArrays(runtime, path).arrays[0].ToVector() == std::vector<float>{1, 2});
  std::vector<float> many(700'000);  // written and read in pieces of a MiB
  std::iota(many.begin(), many.end(), 0.0f);
  SaveArrays(path, {{"arg:w"}, {NDArray::FromVector(runtime, {700, 1000}, many)}});
  CHECK(LoadArrays(runtime, path).arrays[0].ToVector() == many);
  std::filesystem::remove(path);
  CHECK_THROWS_AS(LoadArrays(runtime, path), Error);
  CHECK_THROWS_AS(SerializeArrays({{"a", "b"}, {NDArray()}}), Error);
}

}  // namespace
}  // namespace mxtrain
