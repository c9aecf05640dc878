// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/text/internal/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "mxtrain/base/error.h"
#include "mxtrain/base/text.h"

namespace mxtrain::text {
namespace {

// A pattern takes at most some dozen steps for a byte; what takes millions from one place would
// take forever on a long text.
constexpr uint32_t kMostSteps = 20'000'000, kMostHeapKib = 64 << 10;
constexpr size_t kLeastJitStack = 32 << 10, kMostJitStack = 8 << 20;
constexpr uint32_t kMostParentheses = 100;

template <auto Free>
struct FreedBy {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using CodePtr = std::unique_ptr<pcre2_code, FreedBy<pcre2_code_free>>;
using CompileContextPtr =
    std::unique_ptr<pcre2_compile_context, FreedBy<pcre2_compile_context_free>>;
using MatchContextPtr = std::unique_ptr<pcre2_match_context, FreedBy<pcre2_match_context_free>>;
using MatchDataPtr = std::unique_ptr<pcre2_match_data, FreedBy<pcre2_match_data_free>>;
using JitStackPtr = std::unique_ptr<pcre2_jit_stack, FreedBy<pcre2_jit_stack_free>>;

std::string MessageOfPcre(int code) {
  PCRE2_UCHAR buffer[256];
  pcre2_get_error_message(code, buffer, sizeof buffer);
  return reinterpret_cast<const char*>(buffer);
}

// What a thread needs to match any pattern: made once, since pieces of text are many.
struct MatchScratch {
  MatchContextPtr context{pcre2_match_context_create(nullptr)};
  JitStackPtr stack{pcre2_jit_stack_create(kLeastJitStack, kMostJitStack, nullptr)};
  MatchDataPtr data{pcre2_match_data_create(1, nullptr)};

  MatchScratch() {
    if (!context || !stack || !data)
      Throw(ErrorKind::kMemory, "out of memory for matching a regular expression");
    pcre2_set_match_limit(context.get(), kMostSteps);
    pcre2_set_depth_limit(context.get(), kMostSteps);
    pcre2_set_heap_limit(context.get(), kMostHeapKib);
    pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
  }
};

}  // namespace

struct Regex::Code {
  CodePtr pcre;
};

Regex::Regex(const std::string& pattern) {
  const CompileContextPtr context(pcre2_compile_context_create(nullptr));
  if (!context) Throw(ErrorKind::kMemory, "out of memory for a regular expression");
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  pcre2_set_parens_nest_limit(context.get(), kMostParentheses);
  int error = 0;
  size_t place = 0;
  CodePtr code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                             PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C,
                             &error, &place, context.get()));
  if (!code) {
    Throw(ErrorKind::kData, "the pattern '{}' is wrong at its byte {}: {}", Shortened(pattern),
          place, MessageOfPcre(error));
  }
  uint32_t matches_empty = 0;
  pcre2_pattern_info(code.get(), PCRE2_INFO_MATCHEMPTY, &matches_empty);
  if (matches_empty)
    Throw(ErrorKind::kData, "the pattern '{}' matches the empty text, which splits nothing",
          Shortened(pattern));
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);  // without it, matching is interpreted
  code_ = std::make_unique<Code>(Code{std::move(code)});
}

Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;

Regex::Match Regex::Search::Next() {
  thread_local const MatchScratch scratch;
  const int found =
      pcre2_match(regex_.code_->pcre.get(),
                  reinterpret_cast<PCRE2_SPTR>(text_.data() ? text_.data() : ""), text_.size(), at_,
                  PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, scratch.data.get(), scratch.context.get());
  if (found == PCRE2_ERROR_NOMATCH) return {};
  if (found < 0) {
    Throw(ErrorKind::kData, "a pattern cannot be matched from byte {} of a text of {} bytes: {}",
          at_, text_.size(), MessageOfPcre(found));
  }
  const size_t* const ends = pcre2_get_ovector_pointer(scratch.data.get());
  // A lookbehind with \K could begin a match earlier.
  if (ends[0] < at_ || ends[1] <= ends[0])
    Throw(ErrorKind::kData, "a pattern matches backwards at byte {} of a text", at_);
  at_ = ends[1];
  return {ends[0], ends[1]};
}

}  // namespace mxtrain::text
