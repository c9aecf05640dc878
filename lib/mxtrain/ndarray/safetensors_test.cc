// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/ndarray/safetensors.h"

#include <doctest/doctest.h>

#include "mxtrain/base/error.h"
#include "tests/support/error_message.h"
#include "tests/support/naive_runtime.h"

namespace mxtrain {
namespace {

using test::NaiveOptions;
using test::Says;

// A file put together by hand, as the format's description says.
std::string FileOf(const std::string& header, const std::string& data) {
  std::string bytes(8, '\0');
  for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(header.size() >> (8 * i) & 0xff);
  return bytes + header + data;
}

std::string ErrorOfSafetensors(Runtime& runtime, const std::string& bytes) {
  try {
    DeserializeSafetensors(runtime, bytes, "net.safetensors");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kData);
    return error.what();
  }
  return "";
}

TEST_CASE("safetensors: a file written by hand") {
  Runtime runtime(NaiveOptions(), nullptr);
  // 1.5 and -2 as float32; 0.5 as bfloat16 (3f00) and float16 (3800); 7 as int64; a scalar; an
  // array without elements.
  const std::string data("\x00\x00\xc0\x3f\x00\x00\x00\xc0\x00\x3f\x00\x38\x07\0\0\0\0\0\0\0", 20);
  const std::string header =
      R"({"__metadata__":{"by":"hand"},"w":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},
    "b":{"dtype":"BF16","shape":[1],"data_offsets":[8,10]},"h":{"dtype":"F16","shape":[1],"data_offsets":[10,12]},
    "n":{"dtype":"I64","shape":[],"data_offsets":[12,20]},"e":{"dtype":"F32","shape":[0,3],"data_offsets":[20,20]}})";
  const NamedArrays arrays =
      DeserializeSafetensors(runtime, FileOf(header, data), "net.safetensors");
  REQUIRE(arrays.names == std::vector<std::string>{"b", "e", "h", "n", "w"});
  CHECK(arrays.arrays[0].ToVector() == std::vector<float>{0.5f});
  CHECK(arrays.arrays[1].shape() == TShape{0, 3});
  CHECK(arrays.arrays[2].ToVector() == std::vector<float>{0.5f});
  CHECK(arrays.arrays[3].shape().ndim() == 0);
  CHECK(arrays.arrays[3].ToVector() == std::vector<float>{7});
  CHECK(arrays.arrays[4].ToVector() == std::vector<float>{1.5f, -2});
  CHECK(arrays.arrays[4].shape() == TShape{2, 1});
}

// A mask or a counter beside the weights once made the whole file unreadable.
TEST_CASE("safetensors: types that arrays do not have are read as wider ones") {
  Runtime runtime(NaiveOptions(), nullptr);
  const std::string data(
      "\x01\0\x01\0"
      "\xfe\x7f"
      "\xfe\xff"
      "\xfe\xff"
      "\xff\xff\xff\xff"
      "\x05\0\0\0\0\0\0\0",
      22);
  const std::string header =
      R"({"a":{"dtype":"BOOL","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"I8","shape":[2],"data_offsets":[4,6]},
    "c":{"dtype":"I16","shape":[1],"data_offsets":[6,8]},"d":{"dtype":"U16","shape":[1],"data_offsets":[8,10]},
    "e":{"dtype":"U32","shape":[],"data_offsets":[10,14]},"f":{"dtype":"U64","shape":[1],"data_offsets":[14,22]}})";
  const NamedArrays arrays =
      DeserializeSafetensors(runtime, FileOf(header, data), "net.safetensors");
  const std::vector<float> expected[] = {{1, 0, 1, 0}, {-2, 127},       {-2},
                                         {65534},      {4294967295.0f}, {5}};
  REQUIRE(arrays.arrays.size() == 6);
  for (size_t i = 0; i < 6; ++i) CHECK(arrays.arrays[i].ToVector() == expected[i]);
  CHECK(arrays.arrays[0].dtype() == DType::kUint8);
  CHECK(arrays.arrays[4].dtype() == DType::kInt64);
  CHECK(Says(ErrorOfSafetensors(runtime,
                                FileOf(R"({"f":{"dtype":"U64","shape":[1],"data_offsets":[0,8]}})",
                                       std::string(8, '\xff'))),
             "array 'f': its element 18446744073709551615 is too large for int64"));
  CHECK(Says(ErrorOfSafetensors(runtime,
                                FileOf(R"({"c":{"dtype":"I16","shape":[3],"data_offsets":[0,4]}})",
                                       std::string(4, '\0'))),
             "[3] of type I16 takes 6 bytes, the file says 4"));
}

// Of the format's words, these have no array here: an unused one once made the file unreadable.
TEST_CASE("safetensors: arrays of types that nothing holds are left, by name and with why") {
  Runtime runtime(NaiveOptions(), nullptr);
  for (const char* word : {"C64", "F8_E4M3", "F8_E5M2", "F8_E8M0", "F4", "F6_E2M3", "F6_E3M2"}) {
    CAPTURE(word);
    const std::string file =
        FileOf(format(R"({{"s":{{"dtype":"{}","shape":[2],"data_offsets":[4,12]}},)"
                      R"("u":{{"dtype":"U64","shape":[1],"data_offsets":[12,20]}},)"
                      R"("w":{{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}}})",
                      word),
               std::string("\0\0\xc0\x3f", 4) + std::string(16, '\xff'));
    UnreadArrays unread;
    const NamedArrays arrays = DeserializeSafetensors(runtime, file, "net.safetensors", &unread);
    CHECK(arrays.names == std::vector<std::string>{"w"});
    CHECK(arrays.arrays.at(0).ToVector() == std::vector<float>{1.5f});
    REQUIRE(unread.size() == 2);
    CHECK(unread["s"] == format("its elements are {}, which mxtrain does not support; save it as "
                                "F32",
                                word));
    CHECK(unread["u"] == "its element 18446744073709551615 is too large for int64");
    CHECK(Says(ErrorOfSafetensors(runtime, file), format("array 's': its elements are {}", word)));
  }
  // Their places are checked like those of the others.
  UnreadArrays unread;
  CHECK_THROWS_AS(
      DeserializeSafetensors(runtime,
                             FileOf(R"({"s":{"dtype":"C64","shape":[1],"data_offsets":[0,8]},)"
                                    R"("w":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                                    std::string(8, '\0')),
                             "net.safetensors", &unread),
      Error);
}

TEST_CASE("safetensors: what is written is read back") {
  Runtime runtime(NaiveOptions(), nullptr);
  const std::map<std::string, NDArray> arrays = {
      {"fc_weight", NDArray::FromVector(runtime, {2, 3}, {1, 2, 3, 4, 5, 6})},
      {"fc_bias", NDArray::FromVector(runtime, {2}, {-1, 0.25f})}};
  const std::string bytes = SerializeSafetensors(arrays, {{"format", "pt"}});
  CHECK(bytes.size() % 8 == 0);
  const NamedArrays back = DeserializeSafetensors(runtime, bytes, "net.safetensors");
  REQUIRE(back.names == std::vector<std::string>{"fc_bias", "fc_weight"});
  CHECK(back.arrays[0].ToVector() == arrays.at("fc_bias").ToVector());
  CHECK(back.arrays[1].ToVector() == arrays.at("fc_weight").ToVector());
  CHECK(back.arrays[1].shape() == TShape{2, 3});
}

TEST_CASE("safetensors: a name that is not UTF-8 cannot be written, metadata can") {
  Runtime runtime(NaiveOptions(), nullptr);
  const NDArray array = NDArray::FromVector(runtime, {1}, {1});
  try {
    SerializeSafetensors({{"caf\xe9", array}});
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kData);
    CHECK(std::string(error.what()) ==
          "array 'caf\\xe9' cannot be written to a safetensors file: its name is not UTF-8");
  }
  const std::string bytes =
      SerializeSafetensors({{"caf\xc3\xa9", array}}, {{"data", "/photos/caf\xe9"}});
  CHECK(DeserializeSafetensors(runtime, bytes, "net.safetensors").names ==
        std::vector<std::string>{"caf\xc3\xa9"});
}

TEST_CASE("safetensors: bytes that several arrays claim, and duplicate names") {
  Runtime runtime(NaiveOptions(), nullptr);
  const std::string data(8, '\0');
  CHECK(Says(
      ErrorOfSafetensors(
          runtime,
          FileOf(
              R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
              data)),
      "the arrays 'a' and 'b' overlap"));
  CHECK(Says(
      ErrorOfSafetensors(
          runtime,
          FileOf(
              R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"w":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
              data)),
      "the key 'w' is there twice in one object"));
  CHECK(
      ErrorOfSafetensors(
          runtime,
          FileOf(R"({"__metadata__":{"w":"1"},"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},
    "e":{"dtype":"F32","shape":[0],"data_offsets":[2,2]}})",
                 data)) == "");

  // Three thousand arrays over the same MiB are rejected before the first is created.
  std::string header = "{";
  for (int i = 0; i < 3000; ++i)
    header += format(R"({}"a{}":{{"dtype":"U8","shape":[1048576],"data_offsets":[0,1048576]}})",
                     i ? "," : "", i);
  const int64_t before = runtime.storage().GetStats(Context::cpu()).allocations;
  CHECK(Says(ErrorOfSafetensors(runtime, FileOf(header + "}", std::string(1 << 20, '\0'))),
             "overlap; every array"));
  CHECK(runtime.storage().GetStats(Context::cpu()).allocations == before);
}

TEST_CASE("safetensors: damaged files") {
  Runtime runtime(NaiveOptions(), nullptr);
  const std::string data(8, '\0');
  const auto with = [&](const std::string& item) {
    return ErrorOfSafetensors(runtime, FileOf("{\"w\":" + item + "}", data));
  };
  CHECK(Says(ErrorOfSafetensors(runtime, "abc"), "it has 3 bytes"));
  CHECK(Says(ErrorOfSafetensors(runtime, std::string(8, '\xff')), "not a header length"));
  CHECK(Says(ErrorOfSafetensors(runtime, FileOf("[1]", data)), "not a JSON object"));
  CHECK(Says(ErrorOfSafetensors(runtime, FileOf("{\"w\"", data)), "header: it is not JSON"));
  CHECK(Says(with("7"), "does not describe 'w'"));
  CHECK(Says(with(R"({"dtype":"F32","shape":"2","data_offsets":[0,8]})"), "does not describe 'w'"));
  CHECK(Says(with(R"({"dtype":"F8_E4M3","shape":[8],"data_offsets":[0,8]})"),
             "its elements are F8_E4M3"));
  CHECK(Says(with(R"({"dtype":"F32","shape":[2],"data_offsets":[4,12]})"), "is truncated: it has"));
  CHECK(Says(with(R"({"dtype":"F32","shape":[2],"data_offsets":[4,18446744073709551615]})"),
             "are outside the file"));
  CHECK(Says(with(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})"), "are outside the file"));
  CHECK(Says(with(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})"),
             "takes 12 bytes, the file says 8"));
  CHECK(Says(with(R"({"dtype":"F32","shape":[1],"data_offsets":[0,8]})"),
             "takes 4 bytes, the file says 8"));
  CHECK(Says(with(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})"), "its shape is [-2]"));
  CHECK(Says(with(R"({"dtype":"F32","shape":[4294967296,4294967296,2],"data_offsets":[0,8]})"),
             "its shape is"));
  CHECK(Says(
      with(
          R"({"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]})"),
      "dimensions"));
  const std::string whole =
      FileOf(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", data);
  CHECK(ErrorOfSafetensors(runtime, whole).empty());
  for (size_t cut = 0; cut < whole.size(); ++cut)
    CHECK_FALSE(ErrorOfSafetensors(runtime, whole.substr(0, cut)).empty());
}

}  // namespace
}  // namespace mxtrain
