// SPDX-License-Identifier: Apache-2.0
#pragma once
// What `mxtrain tokenize` was asked for and how far it came, as the journal of its output keeps
// them (text::PartialTokens): another process continues only the same work.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/io/encode_texts.h"
#include "mxtrain/io/text_files.h"

namespace mxtrain::commands {

struct TokenizePlace {
  io::TextPlace texts;
  int64_t bytes = 0;  // of files, read before
};
std::string ToText(const TokenizePlace& place);
// Throws kData for a text that ToText did not write.
TokenizePlace TokenizePlaceFrom(const std::string& text);

// JSON with the columns, the tokenizer, and path, size and checksum of all files that are read.
// `train`: the tokens of a tokenizer that is made. Throws what reading throws.
std::string TokenizeRequest(const io::TextPaths& paths, const std::string& tokenizer,
                            std::optional<int64_t> train);
// What the difference of a file ends with that has other content now: what was read is gone.
inline constexpr std::string_view kChangedSince = " was changed since";
// What differs between two requests, in words, each named; none if they are the same.
std::vector<std::string> DifferencesOfRequests(const std::string& before, const std::string& now);

}  // namespace mxtrain::commands
