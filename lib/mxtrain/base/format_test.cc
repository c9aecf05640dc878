// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/base/format.h"

#include <doctest/doctest.h>

#include "mxtrain/base/error.h"

namespace mxtrain {
namespace {

TEST_CASE("a NUL does not end a message") {
  const Error error(ErrorKind::kData, std::string("'a\0b' is not a number", 21));
  CHECK(std::string(error.what()) == "'a\\x00b' is not a number");
}

TEST_CASE("bytes that are not printable are shown by their codes") {
  CHECK(EscapedBytes("caf\xe9\n ~") == "caf\\xe9\\x0a ~");
}

TEST_CASE("sizes are human-readable") {
  CHECK(FormatBytes(0) == "0 B");
  CHECK(FormatBytes(64) == "64 B");
  CHECK(FormatBytes(1023) == "1023 B");
  CHECK(FormatBytes(12 << 10) == "12 KiB");
  CHECK(FormatBytes(100 << 10) == "100 KiB");
  CHECK(FormatBytes((int64_t{3} << 30) / 2) == "1.5 GiB");
  CHECK(FormatBytes(1300000) == "1.24 MiB");
  CHECK(FormatBytes(int64_t{5000} << 40) == "5000 TiB");
  CHECK(FormatBytes(-2048) == "-2 KiB");
}

TEST_CASE("a count has a noun in the right number") {
  CHECK(Counted(0, "row") == "0 rows");
  CHECK(Counted(1, "row") == "1 row");
  CHECK(Counted(2, "row") == "2 rows");
}

TEST_CASE("a long list is truncated and says how many are missing") {
  CHECK(FirstOf({}, 2).empty());
  CHECK(FirstOf({"a", "b"}, 2) == "a, b");
  CHECK(FirstOf({"a", "b", "c", "d"}, 2, "; ") == "a; b; and 2 more");
}

}  // namespace
}  // namespace mxtrain
