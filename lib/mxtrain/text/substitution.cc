// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/text/substitution.h"

#include <cstdint>
#include <utility>

#include "mxtrain/base/error.h"
#include "mxtrain/base/text.h"
#include "mxtrain/text/internal/pcre.h"

namespace mxtrain::text {
namespace {

constexpr size_t kMostBytes = size_t{1} << 20;

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

}  // namespace

struct Substitution::Code {
  PcreCode pcre;
};

Substitution::Substitution(const std::string& pattern, const std::string& replacement)
    : pattern_(pattern), code_(std::make_unique<Code>(Code{CompilePcre(pattern, 0)})) {
  uint32_t groups = 0;
  pcre2_pattern_info(code_->pcre.get(), PCRE2_INFO_CAPTURECOUNT, &groups);
  parts_.emplace_back();
  const auto end_with = [this](int group) {
    parts_.back().group = group;
    parts_.emplace_back();
  };
  for (size_t i = 0; i < replacement.size(); ++i) {
    const char next = i + 1 < replacement.size() ? replacement[i + 1] : '\0';
    if (replacement[i] != '$' || (next != '$' && next != '&' && !IsDigit(next))) {
      parts_.back().text += replacement[i];
      continue;
    }
    ++i;
    if (next == '$') {
      parts_.back().text += '$';
    } else if (next == '&') {
      end_with(0);
    } else {
      int group = next - '0';
      // Two digits where there is such a group.
      if (i + 1 < replacement.size() && IsDigit(replacement[i + 1])) {
        const int longer = 10 * group + (replacement[i + 1] - '0');
        if (longer <= static_cast<int>(groups)) group = longer, ++i;
      }
      if (group == 0 || group > static_cast<int>(groups)) {
        Throw(ErrorKind::kData, "the replacement '{}' names ${}, but the pattern '{}' has {}",
              Shortened(replacement), group, Shortened(pattern), Counted(groups, "group"));
      }
      end_with(group);
    }
  }
}

Substitution::~Substitution() = default;
Substitution::Substitution(Substitution&&) noexcept = default;

std::optional<std::string> Substitution::Apply(std::string_view text) const {
  const PcreMatchData data(pcre2_match_data_create_from_pattern(code_->pcre.get(), nullptr));
  if (!data) Throw(ErrorKind::kMemory, "out of memory for matching a regular expression");
  const int found =
      pcre2_match(code_->pcre.get(), reinterpret_cast<PCRE2_SPTR>(text.data() ? text.data() : ""),
                  text.size(), 0, 0, data.get(), BoundedMatches());
  if (found == PCRE2_ERROR_NOMATCH) return std::nullopt;
  if (found < 0) {
    Throw(ErrorKind::kData, "the pattern '{}' cannot be matched with '{}': {}", Shortened(pattern_),
          Shortened(std::string(text)), MessageOfPcre(found));
  }
  const size_t* const ends = pcre2_get_ovector_pointer(data.get());
  std::string result(text.substr(0, ends[0]));
  const auto append = [&](std::string_view more) {
    result += more;
    if (result.size() > kMostBytes)
      Throw(ErrorKind::kData, "the pattern '{}' makes a name of more than {} bytes",
            Shortened(pattern_), kMostBytes);
  };
  for (const Part& part : parts_) {
    append(part.text);
    if (part.group < 0 || ends[2 * part.group] == PCRE2_UNSET) continue;
    append(text.substr(ends[2 * part.group], ends[2 * part.group + 1] - ends[2 * part.group]));
  }
  append(text.substr(std::max(ends[0], ends[1])));
  return result;
}

}  // namespace mxtrain::text
