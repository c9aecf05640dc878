// SPDX-License-Identifier: Apache-2.0
#pragma once
// std::format for compilers that lack it: fmt under the project's name.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/base/macros.h"

namespace mxtrain {
using fmt::format;
using fmt::join;

// "1.5 GiB", "12 KiB", "64 B": human-readable sizes. Machine-readable output uses the plain number.
MXTRAIN_API std::string FormatBytes(int64_t bytes);
// "1 column", "3 columns".
template <typename Integer>
std::string Counted(Integer count, std::string_view noun) {
  return format("{} {}{}", count, noun, count == 1 ? "" : "s");
}
// "a, b, c, and 4 more": the first `most` of a list.
MXTRAIN_API std::string FirstOf(std::vector<std::string> all, size_t most,
                                const char* separator = ", ");
// Printable ASCII as it is, all other bytes as \xNN: for a name that is not text.
MXTRAIN_API std::string EscapedBytes(std::string_view bytes);
}  // namespace mxtrain
