#pragma once
// "did you mean ...?": the nearest name of a list.
#include <span>
#include <string>
#include <string_view>

#include "mxtrain/base/macros.h"

namespace mxtrain {

// The candidate with the least edit distance (insert, delete, replace, swap neighbours; a change of
// case counts half). "" if even that one is too far to be a typo (more than a third of its length,
// at least 2) and none starts with the word (3 characters or more).
MXTRAIN_API std::string Nearest(std::string_view word, std::span<const std::string> candidates);
// "; did you mean 'X'?" or "".
MXTRAIN_API std::string DidYouMean(std::string_view word, std::span<const std::string> candidates);

}  // namespace mxtrain
