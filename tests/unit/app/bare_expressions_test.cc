// SPDX-License-Identifier: Apache-2.0
#include "app/config/bare_expressions.h"

#include <doctest/doctest.h>

namespace mxtrain::test {
namespace {

using Strings = std::vector<std::string>;

// The scalars that need quotes; "in flow: " before those inside brackets.
Strings Bare(const std::string& text) {
  Strings found;
  for (const config::BareExpression& bare : config::FindBareExpressions(text).list) {
    CHECK(bare.begin < bare.end);
    CHECK(bare.end <= text.size());
    found.push_back((bare.in_flow ? "in flow: " : "") + bare.scalar);
  }
  return found;
}

TEST_CASE("inside brackets every ${...} needs quotes") {
  CHECK(Bare("a: {b: ${x}}") == Strings{"in flow: ${x}"});
  CHECK(Bare("- {a: [1, {b: unit${i + 1}_x}], c: ${y} }") ==
        Strings{"in flow: unit${i + 1}_x", "in flow: ${y}"});
  CHECK(
      Bare("a: [\n  ${x ? b : c}, # {d: ${no}}\n  ${DATA:-photos}/train,\n  ${min(1, 2)}]") ==
      Strings{"in flow: ${x ? b : c}", "in flow: ${DATA:-photos}/train", "in flow: ${min(1, 2)}"});
  CHECK(Bare("a: {b: ${x ?\n    1 : 2}}\n") == Strings{"in flow: ${x ? 1 : 2}"});
  CHECK(Bare("a: {b: ${x ?\r\n    1 : 2}}\r\n") == Strings{"in flow: ${x ? 1 : 2}"});
  CHECK(Bare("{${a}: 1}") == Strings{"in flow: ${a}"});
  CHECK(Bare("- &base {a: &b ${x}}") == Strings{"in flow: ${x}"});
  CHECK(Bare("a: b\n? {c: ${x}}\n: [${y}]\n--- [${z}]") ==
        Strings{"in flow: ${x}", "in flow: ${y}", "in flow: ${z}"});
}

TEST_CASE("quoted texts, comments, block scalars and values on their own line need none") {
  for (const char* text :
       {"a: ${x}", "- ${x}", "a: x {b: ${c}}", "a: ${x} # {b: ${c}}", "a: # [${x}]",
        "a: {b: \"${x}\", c: '${y}', d: \"\\\"${z}\"}", "a: {b: 'it''s ${x}'}",
        "a: {b: &c \"d ${x}\"}", "a: \"first\n  {b: ${x}}\"\n", "a: first\n  {b: ${x}}\n",
        "a: |\n  {b: ${x}}\n\n  [${y}]\n", "- a: >-\n    {b: ${x}}\n", "- - |\n    {b: ${x}}\n",
        "%YAML 1.2\n---\na: ${x}\n", "a: {b: ${x", "${", ""}) {
    CAPTURE(text);
    CHECK(Bare(text).empty());
  }
  CHECK(Bare("- a: |\n    {b: ${x}}\n  c: {d: ${y}}\n") == Strings{"in flow: ${y}"});
}

TEST_CASE("a colon or a comment sign in an expression needs quotes") {
  CHECK(Bare("a: ${x ? b : c}") == Strings{"${x ? b : c}"});
  CHECK(Bare("- n${x ? b : c}_${y}  # d") == Strings{"n${x ? b : c}_${y}"});
  CHECK(Bare("a: ${x # b}") == Strings{"${x # b}"});
  CHECK(Bare("a: ${DATA:-photos}").empty());
}

TEST_CASE("an open bracket is the error, not what follows it") {
  const config::BareExpressions found = config::FindBareExpressions("a: {b: [1, 2\nc: ${x}\n");
  CHECK(found.list.empty());
  CHECK(found.open_bracket == 7);
  CHECK_FALSE(config::FindBareExpressions("a: {b: [1, 2\nc: 3\n").open_bracket);
  CHECK(config::FindBareExpressions("a: {b: {c: ${x}}\n").open_bracket == 3);
}

TEST_CASE("quoting gives texts that need no more quotes") {
  CHECK(config::QuoteBareExpressions("a: {b: ${x}, c: [u${i}, ${s ? 'p' : 'q'}]}\nd: ${e}\n") ==
        "a: {b: \"${x}\", c: [\"u${i}\", \"${s ? 'p' : 'q'}\"]}\nd: ${e}\n");
  CHECK(config::QuoteBareExpressions("a: ${x ? b : c}\n") == "a: \"${x ? b : c}\"\n");
  CHECK(config::QuoteBareExpressions("a: [${x == \"y\"}]") == "a: [\"${x == \\\"y\\\"}\"]");
}

}  // namespace
}  // namespace mxtrain::test
