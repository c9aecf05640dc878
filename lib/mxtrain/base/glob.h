// SPDX-License-Identifier: Apache-2.0
#pragma once
// Patterns for names, as in shells: `*` matches any number of characters, `?` exactly one.
#include <span>
#include <string>
#include <string_view>

#include "mxtrain/base/macros.h"

namespace mxtrain {

// Whether the whole of `text` matches.
MXTRAIN_API bool GlobMatches(std::string_view pattern, std::string_view text);
// Throws kConfig if the pattern matches none of the names, with the nearest prefix of a name.
// `what` is what the names denote ("parameter").
MXTRAIN_API void RequireMatch(std::string_view pattern, std::span<const std::string> names,
                              std::string_view what);

}  // namespace mxtrain
