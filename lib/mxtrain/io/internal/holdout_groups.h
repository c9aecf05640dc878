// SPDX-License-Identifier: Apache-2.0
#pragma once
// Splits that keep the examples of a group together. Private to io.
#include <cstdint>
#include <string>
#include <vector>

#include "mxtrain/io/internal/holdout_source.h"

namespace mxtrain::io {

// By example, the number of its group; empty if nothing says groups. `root` as of HoldoutIndices.
// Throws kConfig for a pattern that is no regular expression, and one that matches no file.
std::vector<int64_t> FindGroups(const Source& source, const HoldoutParam& param,
                                const std::string& root);

// The examples held out, in any order. `group`: of FindGroups, not empty. Throws kConfig if there
// are fewer groups than parts.
std::vector<int64_t> HeldOutGroups(const Source& source, const HoldoutParam& param,
                                   const std::vector<int64_t>& group);

}  // namespace mxtrain::io
