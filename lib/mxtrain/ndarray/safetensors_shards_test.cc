// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/ndarray/safetensors_shards.h"

#include <doctest/doctest.h>

#include "mxtrain/base/error.h"
#include "mxtrain/ndarray/safetensors.h"
#include "tests/support/error_message.h"
#include "tests/support/naive_runtime.h"
#include "tests/support/temp_dir.h"

namespace mxtrain {
namespace {

using test::NaiveOptions;
using test::Says;

struct Shards {
  Runtime runtime{NaiveOptions(), nullptr};
  test::TempDir folder;

  Shards() {
    Write("a.safetensors", {"w", "b"});
    Write("z.safetensors", {"c"});
  }
  void Write(const std::string& file, const std::vector<std::string>& names) {
    std::map<std::string, NDArray> arrays;
    for (const std::string& name : names)
      arrays[name] = NDArray::FromVector(runtime, {1}, {static_cast<float>(name[0])});
    folder.Write(file, SerializeSafetensors(arrays));
  }
  // What an index says; "" if it is accepted.
  std::string ErrorOf(const std::string& map, ErrorKind kind = ErrorKind::kData) {
    folder.Write("m.safetensors.index.json", map);
    try {
      LoadSafetensorsShards(runtime, folder.path("m.safetensors.index.json"));
    } catch (const Error& error) {
      CHECK(error.kind() == kind);
      return error.what();
    }
    return "";
  }
};

TEST_CASE_FIXTURE(Shards, "shards: the arrays of all files by name") {
  const std::string index =
      R"({"metadata":{"total_size":12},
          "weight_map":{"w":"a.safetensors","c":"z.safetensors","b":"a.safetensors"}})";
  folder.Write("m.safetensors.index.json", index);
  const NamedArrays arrays =
      LoadSafetensorsShards(runtime, folder.path("m.safetensors.index.json"));
  REQUIRE(arrays.names == std::vector<std::string>{"b", "c", "w"});
  CHECK(arrays.arrays[0].ToVector() == std::vector<float>{'b'});
  CHECK(arrays.arrays[1].ToVector() == std::vector<float>{'c'});
  CHECK(arrays.arrays[2].ToVector() == std::vector<float>{'w'});
  CHECK(ShardsOf(index, "m") == std::vector<std::string>{"a.safetensors", "z.safetensors"});
  CHECK(IsSafetensorsIndex("a/model.safetensors.index.json"));
  CHECK_FALSE(IsSafetensorsIndex("a/model.safetensors"));
}

TEST_CASE_FIXTURE(Shards, "shards: what does not agree with its index is refused") {
  CHECK(Says(ErrorOf(R"({"weight_map":{"w":"a.safetensors"}})"), "holds the array 'b', which"));
  CHECK(Says(ErrorOf(R"({"weight_map":{"w":"a.safetensors","b":"a.safetensors",
                                       "d":"a.safetensors"}})"),
             "lacks the array 'd', which"));
  CHECK(Says(ErrorOf(R"({"weight_map":{"c":"absent.safetensors"}})", ErrorKind::kFileSystem),
             "absent.safetensors"));
  CHECK(Says(ErrorOf("{}"), "is not an index of safetensors files"));
  CHECK(Says(ErrorOf("[]"), "is not an index of safetensors files"));
  CHECK(Says(ErrorOf("{\"weight_map\":"), "is not an index of safetensors files"));
  CHECK(Says(ErrorOf(R"({"weight_map":[1]})"), "is not an index of safetensors files"));
}

TEST_CASE_FIXTURE(Shards, "shards: no path leaves the folder") {
  for (const char* shard :
       {"../a.safetensors", "/etc/a.safetensors", "x/../a.safetensors", "..", "", ".safetensors",
        "a.bin", "a.safetensors/", "a\\u0000.safetensors"}) {
    CAPTURE(shard);
    CHECK(Says(ErrorOf(format(R"({{"weight_map":{{"w":"{}"}}}})", shard)),
               "is not the name of a .safetensors file in the same folder"));
  }
  CHECK(Says(ErrorOf(R"({"weight_map":{"w":7}})"), "is not the name of a .safetensors file"));
}

TEST_CASE_FIXTURE(Shards, "shards: an index cannot list files without end") {
  std::string map = R"({"weight_map":{)";
  for (int i = 0; i < 1001; ++i) map += format(R"({}"a{}":"{}.safetensors")", i ? "," : "", i, i);
  CHECK(Says(ErrorOf(map + "}}"), "lists more than 1000 files"));
}

}  // namespace
}  // namespace mxtrain
