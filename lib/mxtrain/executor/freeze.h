// SPDX-License-Identifier: Apache-2.0
#pragma once
// Freeze: the order of a step as edges between operations. Two operations that access a common
// byte, at least one writing, are always connected by a path; nothing else is ordered.
#include <cstdint>
#include <vector>

#include "mxtrain/base/macros.h"

namespace mxtrain::executor {

// Bytes [begin, end) of an address space: -k is the arena of the k-th device (0: the first), k > 0
// the k-th external buffer. StepSequences adds spaces of operators, from kOperatorSpaces on.
struct ByteRange {
  int space = 0;
  int64_t begin = 0, end = 0;
};
struct Access {
  std::vector<ByteRange> reads, writes;
};

// `operations`: in a valid order. Result: for each the earlier ones it must follow, ascending,
// transitively reduced.
MXTRAIN_API std::vector<std::vector<int>> FindEdges(const std::vector<Access>& operations);

}  // namespace mxtrain::executor
