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

TEST_CASE("a long text loses its middle, between characters") {
  CHECK(Shortened("short") == "short");
  CHECK(Shortened("0123456789", 10) == "0123456789");
  CHECK(Shortened("0123456789abcdef", 12) == "012345...def");
  CHECK(Shortened(std::string(1 << 20, 'x')).size() == 80);
  // Two bytes each: what would be cut in two is omitted.
  CHECK(Shortened("\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6\xc3\xbc", 10) ==
        "\xc3\xa4\xc3\xb6...\xc3\xbc");
  CHECK(Shortened(std::string(100, '\x80'), 20).size() <= 20);  // not UTF-8
}

TEST_CASE("UTF-8") {
  for (const char* text : {"", "plain", "caf\xc3\xa9", "\xe2\x82\xac", "\xed\x9f\xbf",
                           "\xf0\x9f\x90\x88", "\xf4\x8f\xbf\xbf"})
    CHECK(IsUtf8(text));
  for (const char* text :
       {"caf\xe9", "\x80", "\xc3", "a\xc3(", "\xe2\x82", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80",
        "\xf0\x80\x80\xaf", "\xf4\x90\x80\x80", "\xff"})
    CHECK_FALSE(IsUtf8(text));
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
