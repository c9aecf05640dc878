// SPDX-License-Identifier: Apache-2.0
#pragma once
// Cells that are numbers to a reader, and are not written as numbers. Private to io.
#include <optional>
#include <string>
#include <string_view>

namespace mxtrain::io {

// 1.234 or -1.234.567: whole thousands with points between them.
bool HasThousandPoints(std::string_view text);

struct NumberLike {
  std::string with;   // "blanks between thousands"
  std::string plain;  // the number with a decimal point, without all that: "24283.48"
};
// Of 24 283,48, 24'283.48, 24,283.48, 1.234.567, 24.3%, 191.804,88 €, or with the minus sign of
// Unicode; of a decimal comma alone, too. Nothing for plain numbers and for words.
std::optional<NumberLike> LooksLikeNumber(std::string_view cell);

}  // namespace mxtrain::io
