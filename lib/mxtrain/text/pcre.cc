// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/text/internal/pcre.h"

#include "mxtrain/base/error.h"
#include "mxtrain/base/text.h"

namespace mxtrain::text {
namespace {

// A pattern takes at most some dozen steps for a byte; what takes millions from one place would
// take forever on a long text.
constexpr uint32_t kMostSteps = 20'000'000, kMostHeapKib = 64 << 10;
constexpr size_t kLeastJitStack = 32 << 10, kMostJitStack = 8 << 20;
constexpr uint32_t kMostParentheses = 100;

using CompileContext = std::unique_ptr<pcre2_compile_context, FreedBy<pcre2_compile_context_free>>;
using MatchContext = std::unique_ptr<pcre2_match_context, FreedBy<pcre2_match_context_free>>;
using JitStack = std::unique_ptr<pcre2_jit_stack, FreedBy<pcre2_jit_stack_free>>;

// What a thread needs to match any pattern: made once, since pieces of text are many.
struct MatchScratch {
  MatchContext context{pcre2_match_context_create(nullptr)};
  JitStack stack{pcre2_jit_stack_create(kLeastJitStack, kMostJitStack, nullptr)};

  MatchScratch() {
    if (!context || !stack)
      Throw(ErrorKind::kMemory, "out of memory for matching a regular expression");
    pcre2_set_match_limit(context.get(), kMostSteps);
    pcre2_set_depth_limit(context.get(), kMostSteps);
    pcre2_set_heap_limit(context.get(), kMostHeapKib);
    pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
  }
};

}  // namespace

PcreCode CompilePcre(const std::string& pattern, uint32_t options) {
  const CompileContext context(pcre2_compile_context_create(nullptr));
  if (!context) Throw(ErrorKind::kMemory, "out of memory for a regular expression");
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  pcre2_set_parens_nest_limit(context.get(), kMostParentheses);
  int error = 0;
  size_t place = 0;
  PcreCode code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                              options | PCRE2_NEVER_BACKSLASH_C, &error, &place, context.get()));
  if (!code) {
    Throw(ErrorKind::kData, "'{}' is not a valid regular expression: at its byte {}, {}",
          Shortened(pattern), place, MessageOfPcre(error));
  }
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);  // without it, matching is interpreted
  return code;
}

pcre2_match_context* BoundedMatches() {
  thread_local const MatchScratch scratch;
  return scratch.context.get();
}

std::string MessageOfPcre(int code) {
  PCRE2_UCHAR buffer[256];
  pcre2_get_error_message(code, buffer, sizeof buffer);
  return reinterpret_cast<const char*>(buffer);
}

}  // namespace mxtrain::text
