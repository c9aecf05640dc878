// SPDX-License-Identifier: Apache-2.0
#pragma once
// Small operations on text. Letters are those of ASCII; other bytes stay as they are.
#include <string>
#include <string_view>

#include "mxtrain/base/macros.h"

namespace mxtrain {

// In lower case.
MXTRAIN_API std::string Lower(std::string_view text);

// At most so many bytes for a message: a longer text loses its middle, "begin...end". Characters of
// UTF-8 stay whole.
MXTRAIN_API std::string Shortened(std::string_view text, size_t most = 80);

// Whether it is valid UTF-8 (RFC 3629).
MXTRAIN_API bool IsUtf8(std::string_view text);

// Without the characters of `blanks` at both ends; a view of the same text.
MXTRAIN_API std::string_view Trim(std::string_view text, std::string_view blanks = " \t");

}  // namespace mxtrain
