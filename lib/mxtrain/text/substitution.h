// SPDX-License-Identifier: Apache-2.0
#pragma once
// Renaming by a regular expression: its first match is replaced.
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/base/macros.h"

namespace mxtrain::text {

// Immutable: any thread may apply it.
class MXTRAIN_API Substitution {
 public:
  // `pattern`: PCRE2's syntax, on bytes. In `replacement`, $1 to $99 stand for what the pattern's
  // groups matched, $& for all that it matched, $$ for a dollar sign. Throws kData with the reason:
  // a wrong pattern, a group that it does not have.
  Substitution(const std::string& pattern, const std::string& replacement);
  ~Substitution();
  Substitution(Substitution&&) noexcept;

  // Nothing where the pattern has no match. Throws kData if matching takes more than some million
  // steps, or the result is longer than a MiB.
  std::optional<std::string> Apply(std::string_view text) const;

 private:
  struct Code;
  struct Part {  // of the replacement: text, then a group
    std::string text;
    int group = -1;  // none
  };
  std::string pattern_;
  std::unique_ptr<const Code> code_;
  std::vector<Part> parts_;
};

}  // namespace mxtrain::text
