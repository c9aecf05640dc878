// SPDX-License-Identifier: Apache-2.0
#pragma once
// "did you mean ...?": the nearest name of a list.
#include <span>
#include <string>
#include <string_view>

#include "mxtrain/base/macros.h"

namespace mxtrain {

// The candidate with the least edit distance (insert, delete, replace, swap neighbours), regardless
// of case. Only typos count: fewer edits than a third of the longer word, or one; in words of 2
// only the second letter, in single letters none. If there is none, the first candidate that starts
// with the word (3 characters or more); else "".
MXTRAIN_API std::string Nearest(std::string_view word, std::span<const std::string> candidates);
// "; did you mean 'X'?" or "".
MXTRAIN_API std::string DidYouMean(std::string_view word, std::span<const std::string> candidates);

}  // namespace mxtrain
