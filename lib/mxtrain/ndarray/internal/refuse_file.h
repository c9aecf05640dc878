// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the readers of files from elsewhere say when they refuse one. Private to ndarray.
#include <string>
#include <string_view>
#include <utility>

#include "mxtrain/base/error.h"
#include "mxtrain/base/text.h"

namespace mxtrain {

// Throws kData.
template <typename... Args>
[[noreturn]] void RefuseFile(fmt::format_string<Args...> text, Args&&... args) {
  Throw(ErrorKind::kData, text, std::forward<Args>(args)...);
}

// A name from a file: quoted, shortened, its unprintable bytes escaped.
inline std::string QuotedName(std::string_view name) {
  return "'" + EscapedBytes(Shortened(name)) + "'";
}

}  // namespace mxtrain
