// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/text/internal/regex.h"

#include "mxtrain/base/error.h"
#include "mxtrain/base/text.h"
#include "mxtrain/text/internal/pcre.h"

namespace mxtrain::text {

struct Regex::Code {
  PcreCode pcre;
};

Regex::Regex(const std::string& pattern) {
  PcreCode code = CompilePcre(pattern, PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE);
  uint32_t matches_empty = 0;
  pcre2_pattern_info(code.get(), PCRE2_INFO_MATCHEMPTY, &matches_empty);
  if (matches_empty)
    Throw(ErrorKind::kData, "the pattern '{}' matches the empty text, which splits nothing",
          Shortened(pattern));
  code_ = std::make_unique<Code>(Code{std::move(code)});
}

Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;

Regex::Match Regex::Search::Next() {
  thread_local const PcreMatchData data(pcre2_match_data_create(1, nullptr));
  if (!data) Throw(ErrorKind::kMemory, "out of memory for matching a regular expression");
  const int found = pcre2_match(
      regex_.code_->pcre.get(), reinterpret_cast<PCRE2_SPTR>(text_.data() ? text_.data() : ""),
      text_.size(), at_, PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, data.get(), BoundedMatches());
  if (found == PCRE2_ERROR_NOMATCH) return {};
  if (found < 0) {
    Throw(ErrorKind::kData, "a pattern cannot be matched from byte {} of a text of {} bytes: {}",
          at_, text_.size(), MessageOfPcre(found));
  }
  const size_t* const ends = pcre2_get_ovector_pointer(data.get());
  // A lookbehind with \K could begin a match earlier.
  if (ends[0] < at_ || ends[1] <= ends[0])
    Throw(ErrorKind::kData, "a pattern matches backwards at byte {} of a text", at_);
  at_ = ends[1];
  return {ends[0], ends[1]};
}

}  // namespace mxtrain::text
