// SPDX-License-Identifier: Apache-2.0
#pragma once
// Finds ${...} that must be in quotes to be YAML: inside {...} or [...] its '{' begins a mapping,
// and everywhere ": " ends a key and " #" begins a comment. Independent of the YAML library, which
// reports such texts at other places.
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mxtrain::config {

// An unquoted scalar with such an expression.
struct BareExpression {
  size_t begin = 0, end = 0;  // bytes of the text
  bool in_flow = false;       // inside {...} or [...]
  std::string scalar;         // its text; a line break is one space
};

struct BareExpressions {
  std::vector<BareExpression> list;  // in the order of the text
  // The innermost bracket that is never closed, if a ${...} follows it without quotes. Such
  // expressions are not in the list: without that bracket they might be correct.
  std::optional<size_t> open_bracket;
};

// In time linear in the size of the text, which may be anything. Comments, quoted texts and block
// scalars (| and >) are skipped.
BareExpressions FindBareExpressions(std::string_view text);

// The text with each scalar of the list in quotes.
std::string QuoteBareExpressions(std::string text);

}  // namespace mxtrain::config
