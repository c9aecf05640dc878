// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/base/text.h"

#include <doctest/doctest.h>

namespace mxtrain {
namespace {

TEST_CASE("lower case concerns the letters of ASCII alone") {
  CHECK(Lower("") == "");
  CHECK(Lower("AZaz09_[@`{") == "azaz09_[@`{");
  CHECK(Lower("\xc3\x84.JPG") == "\xc3\x84.jpg");  // a letter of UTF-8 keeps its bytes
}

TEST_CASE("trimming keeps what is inside") {
  CHECK(Trim("") == "");
  CHECK(Trim(" \t ") == "");
  CHECK(Trim("\t a \t b ") == "a \t b");
  CHECK(Trim("a\r") == "a\r");
  CHECK(Trim(" a\r", " \r") == "a");
}

}  // namespace
}  // namespace mxtrain
