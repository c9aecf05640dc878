// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sharded optimizer states (ZeRO stage 1, https://arxiv.org/abs/1910.02054): which rank updates
// which key. Keys are not divided, so every optimizer works, also one that needs the norm of a
// weight, and gives the bits of an update that is not sharded.
#include <cstdint>
#include <span>
#include <vector>

#include "mxtrain/base/macros.h"

namespace mxtrain {

// The rank of each key, by its bytes: the largest first, to the rank that has least so far.
MXTRAIN_API std::vector<int> AssignOwners(std::span<const int64_t> bytes, int ranks);

}  // namespace mxtrain
