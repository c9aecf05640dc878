// SPDX-License-Identifier: Apache-2.0
#pragma once
// Letters with marks, which Unicode writes as one character (NFC, as on Linux and Windows) or as a
// letter and marks (NFD, as macOS writes file names): texts that look the same and are not equal.
// Private to io.
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/base/macros.h"

namespace mxtrain::io {

// With letters and marks apart, as NFD, for Latin, Greek, Cyrillic, kana and Hangul; other
// characters, and bytes that are not UTF-8, as they are. Marks stay in their order.
MXTRAIN_API std::string Decomposed(std::string_view text);

// "; it looks like 'é', but ..." for a name that differs from one of `known` only in how its
// letters are composed: how, and what to do; else "".
MXTRAIN_API std::string ComposedDifferently(const std::string& name,
                                            const std::vector<std::string>& known);

// Why a name may not be among `known`: that, or a typing error ("; did you mean ...?"); or "".
std::string WhyNotAmong(const std::string& name, const std::vector<std::string>& known);

}  // namespace mxtrain::io
