// SPDX-License-Identifier: Apache-2.0
#pragma once
// Regular expressions on valid UTF-8, with Unicode's properties, compiled once by PCRE2 (by its
// just-in-time compiler where the machine has it).
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "mxtrain/base/macros.h"

namespace mxtrain::text {

// Immutable: any thread may match.
class MXTRAIN_API Regex {
 public:
  // In PCRE2's own syntax (onig_pattern.h translates from Oniguruma's); `^` and `$` match at each
  // line. Throws kData, the reason alone, for a pattern that is wrong or can match the empty text.
  explicit Regex(const std::string& pattern);
  ~Regex();
  Regex(Regex&&) noexcept;

  struct Match {
    size_t begin = 0, end = 0;  // bytes; none if begin == end
  };
  // Searches one text from left to right; serves one thread.
  class MXTRAIN_API Search {
   public:
    Search(const Regex& regex, std::string_view text) : regex_(regex), text_(text) {}
    // The next match that does not overlap those before. Throws kData if it takes more steps or
    // memory than a splitter of text needs.
    Match Next();

   private:
    const Regex& regex_;
    const std::string_view text_;
    size_t at_ = 0;
  };

  // Whether the text has a match.
  bool Matches(std::string_view text) const { return Search(*this, text).Next().end > 0; }

 private:
  struct Code;
  std::unique_ptr<const Code> code_;
};

}  // namespace mxtrain::text
