// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/base/read_json.h"

#include <doctest/doctest.h>

#include <string>

#include "mxtrain/base/error.h"

namespace mxtrain {
namespace {

std::string Nested(int depth) {
  return std::string(static_cast<size_t>(depth), '[') +
         std::string(static_cast<size_t>(depth), ']');
}

std::string Object(int keys) {
  std::string text = "{";
  for (int i = 0; i < keys; ++i) text += (i ? ",\"" : "\"") + std::to_string(i) + "\":0";
  return text + "}";
}

TEST_CASE("external JSON is read within bounds") {
  CHECK((*ReadJson<FileJson>("{\"a\": [1, {\"a\": 2}]}"))["a"][1]["a"] == 2);
  CHECK(ReadJson<FileJson>(Nested(64)).has_value());
  CHECK(ReadJson<FileJson>(Nested(65)).error().reason == "it is nested more than 64 deep");
  CHECK(ReadJson<FileJson>(std::string(1'000'000, '[')).error().reason ==
        "it is nested more than 64 deep");
  CHECK(ReadJson<FileJson>("[{\"a\": 1, \"a\": 2}]").error().reason ==
        "the key 'a' is there twice in one object");
  CHECK(ReadJson<FileJson>("[1").error().reason == "it is not JSON at its byte 3");
  CHECK(ReadJson<FileJson>("").error().reason == "it is not JSON at its byte 1");
  CHECK(ReadJson<FileJson>(Object(200'000))->size() == 200'000);
  CHECK(ReadJson<Json>(Object(10'000))->size() == 10'000);
  CHECK(ReadJson<Json>(Object(10'001)).error().reason == "an object has more than 10000 keys");
  CHECK(ReadJson<Json>("{\"b\": 1, \"a\": 2}")->dump() == "{\"b\":1,\"a\":2}");
  CHECK_THROWS_WITH_AS(ReadJsonOf("x.json", "]"), "x.json: it is not JSON at its byte 1", Error);
}

}  // namespace
}  // namespace mxtrain
