// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tokens as classes of a language model. Private to io.
#include <string>
#include <vector>

#include "mxtrain/text/tokenizer.h"

namespace mxtrain::io {

// For each id its token as text: bytes that are none are written as <0xFF>, and an id that no token
// has is named by its number. Throws kData for more tokens than float32 tells apart.
std::vector<std::string> TokenNames(const text::Tokenizer& tokenizer);

}  // namespace mxtrain::io
