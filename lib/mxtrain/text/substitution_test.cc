// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/text/substitution.h"

#include <doctest/doctest.h>

#include <optional>
#include <string>

#include "mxtrain/base/error.h"

namespace mxtrain::text {
namespace {

std::optional<std::string> Replaced(const std::string& pattern, const std::string& replacement,
                                    const std::string& text) {
  return Substitution(pattern, replacement).Apply(text);
}

std::string WhyNot(const std::string& pattern, const std::string& replacement,
                   const std::string& text) {
  try {
    Replaced(pattern, replacement, text);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kData);
    return error.what();
  }
  return "";
}

TEST_CASE("substitution: the first match is replaced, with what its groups matched") {
  CHECK(Replaced("a", "b", "banana") == "bbnana");
  CHECK(Replaced("x", "b", "banana") == std::nullopt);
  CHECK(Replaced("(n)(a)", "<$2$1|$&|$$5>", "banana") == "ba<an|na|$5>na");
  CHECK(Replaced("(a)|(b)", "[$1$2]", "b") == "[b]");  // a group that did not take part is empty
  CHECK(Replaced("(b)", "$12", "b") == "b2");          // there is no group 12
  CHECK(Replaced("^", "x", "") == "x");
  CHECK(Replaced("(b)", "$", "b") == "$");
  CHECK(Replaced("n", "\xfe", "\xffn") == "\xff\xfe");  // bytes, not characters
}

TEST_CASE("substitution: what is wrong in a rule, or takes too much, is refused") {
  CHECK(WhyNot("(", "", "").starts_with("'(' is not a valid regular expression: at its byte 1, "));
  CHECK(WhyNot("(a)", "$2", "") ==
        "the replacement '$2' names $2, but the pattern '(a)' has 1 group");
  CHECK(WhyNot(std::string(100'000, '('), "", "").find("regular expression") != std::string::npos);
  CHECK(WhyNot("^(a+)+$", "", std::string(40, 'a') + "b").find("cannot be matched") !=
        std::string::npos);
  std::string many;
  for (int i = 0; i < 2000; ++i) many += "$1";
  CHECK(WhyNot("(.+)", many, std::string(1000, 'a')).find("makes a name of more than") !=
        std::string::npos);
  CHECK(Replaced("^layer1\\.(\\d+)", "$1", "layer1." + std::string(100'000, '1'))->size() ==
        100'000);
}

}  // namespace
}  // namespace mxtrain::text
