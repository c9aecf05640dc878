#pragma once
// Patterns on names, as shells have them: `*` stands for any letters, none too, `?` for one.
#include <span>
#include <string>
#include <string_view>

#include "mxtrain/base/macros.h"

namespace mxtrain {

// Whether the whole of `text` matches.
MXTRAIN_API bool GlobMatches(std::string_view pattern, std::string_view text);
// Throws kConfig when the pattern matches none of the names, which are called `what` ("parameter"), with the nearest beginning of one.
MXTRAIN_API void RequireMatch(std::string_view pattern, std::span<const std::string> names, std::string_view what);

}  // namespace mxtrain
