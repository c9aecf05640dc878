// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace mxtrain {

// Limit on the arrays that one operator reads or writes when a parameter gives their number. Their
// names are generated before the net is checked against it, so a number in a file must not be able
// to request any amount of memory.
inline constexpr int kMostArguments = 1 << 16;

}  // namespace mxtrain
