// SPDX-License-Identifier: Apache-2.0
#pragma once
// The patterns that split text for GPT-2 and for cl100k (GPT-4, Llama 3, Qwen 2), written out by
// hand: a dozen times the speed of a regular expression. Letters, numbers and white space are those
// of PCRE2 (regex.h), so that both split every text alike; splitters_test.cc compares them.
#include <cstddef>
#include <optional>
#include <string_view>

#include "mxtrain/base/macros.h"

namespace mxtrain::text {

enum class KnownPattern { kGpt2, kCl100k, kCl100kSingleDigits };

// As tokenizer.json writes them.
MXTRAIN_API std::string_view PatternOf(KnownPattern pattern);
MXTRAIN_API std::optional<KnownPattern> KnownPatternOf(std::string_view pattern);

// The bytes of the first piece of valid text that is not empty.
MXTRAIN_API size_t FirstGpt2Piece(std::string_view text);
MXTRAIN_API size_t FirstPiece(KnownPattern pattern, std::string_view text);

}  // namespace mxtrain::text
