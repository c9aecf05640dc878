// SPDX-License-Identifier: Apache-2.0
#pragma once
// What separates text, for splitting and replacing: a pattern, a fixed text, or a kind of
// characters.
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/text/internal/json_node.h"
#include "mxtrain/text/internal/regex.h"

namespace mxtrain::text {

class Matcher {
 public:
  struct Span {
    size_t begin, end;
    bool is_match;
  };

  static Matcher OfRegex(const std::string& pcre_pattern);
  // Each character for which the predicate holds is a match by itself.
  static Matcher OfCharacters(std::function<bool(uint32_t)> predicate);
  // {"Regex": PATTERN} in Oniguruma's syntax, {"String": TEXT}, or TEXT.
  static Matcher OfJson(const JsonNode& node);

  // The spans of valid text from its begin to its end, matches and what lies between.
  void Find(std::string_view text, std::vector<Span>* spans) const;

 private:
  Matcher() = default;

  std::shared_ptr<const Regex> regex_;
  std::function<bool(uint32_t)> predicate_;
};

}  // namespace mxtrain::text
