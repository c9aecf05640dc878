#pragma once
// "did you mean ...?": the nearest of a list of names.
#include <span>
#include <string>
#include <string_view>

#include "mxtrain/base/macros.h"

namespace mxtrain {

// The candidate with the least edit distance (insert, delete, replace, swap of neighbours; case counts half), or "" when even that one is
// too far to be a slip of the hand (more than a third of its length, at least 2) and none begins with the word (3 letters or more).
MXTRAIN_API std::string Nearest(std::string_view word, std::span<const std::string> candidates);
// "; did you mean 'X'?" or "".
MXTRAIN_API std::string DidYouMean(std::string_view word, std::span<const std::string> candidates);

}  // namespace mxtrain
