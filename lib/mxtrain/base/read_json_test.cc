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

TEST_CASE("integers of external JSON are taken as they stand, or not at all") {
  const auto in = [](const char* text, int64_t least, int64_t most) {
    return IntegerIn(*ReadJson<FileJson>(text), least, most);
  };
  CHECK(in("0", 0, 9) == 0);
  CHECK(in("9", 0, 9) == 9);
  CHECK(in("-5", -5, 9) == -5);
  CHECK(in("9223372036854775807", 0, INT64_MAX) == INT64_MAX);
  CHECK(in("-9223372036854775808", INT64_MIN, 0) == INT64_MIN);
  for (const char* other : {"10", "-1", "4294967296", "9223372036854775808", "18446744073709551615",
                            "99999999999999999999", "1.0", "1e0", "true", "null", "\"1\"", "[1]"}) {
    CAPTURE(other);
    CHECK_FALSE(in(other, 0, 9));
  }
  CHECK_FALSE(in("18446744073709551615", INT64_MIN, INT64_MAX));
}

}  // namespace
}  // namespace mxtrain
