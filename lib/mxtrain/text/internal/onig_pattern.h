// SPDX-License-Identifier: Apache-2.0
#pragma once
// Regular expressions of tokenizer.json are Oniguruma's, in Ruby's syntax.
#include <string>
#include <string_view>

#include "mxtrain/base/macros.h"

namespace mxtrain::text {

// The same pattern for PCRE2 (regex.h). What means the same is copied; classes that differ are
// written out (\s, \w, \b, \h, scripts, ...); what else differs or is not known to mean the same is
// refused by its name: kData, a sentence without the file.
MXTRAIN_API std::string FromOniguruma(std::string_view pattern);

// Every character of a fixed text as itself.
std::string QuotedPattern(std::string_view text);

}  // namespace mxtrain::text
