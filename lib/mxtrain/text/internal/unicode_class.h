// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a character is, by the Unicode data of utf8proc.
#include <cstdint>
#include <string>
#include <string_view>

namespace mxtrain::text {

// White_Space.
bool IsWhiteSpace(uint32_t code_point);
// ASCII's punctuation and symbols, and the general categories P*.
bool IsPunctuation(uint32_t code_point);
bool IsNumeric(uint32_t code_point);          // N*
bool IsMark(uint32_t code_point);             // M*
bool IsNonspacingMark(uint32_t code_point);   // Mn
bool IsControlOrFormat(uint32_t code_point);  // Cc, Cf, Co
// In the blocks that BERT takes for Chinese characters.
bool IsBertChinese(uint32_t code_point);

// The lower case of one character, by itself: "İ" becomes "i̇", "Σ" always "σ".
void AppendLower(uint32_t code_point, std::string* text);

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };
std::string Normalized(NormalForm form, std::string_view valid_text);

}  // namespace mxtrain::text
