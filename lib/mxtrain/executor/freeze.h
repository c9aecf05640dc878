#pragma once
// Freeze: the order of a step as edges between operations. Two operations that touch a common byte, one of them writing, always have a path of
// edges; nothing else is ordered.
#include <cstdint>
#include <vector>

#include "mxtrain/base/macros.h"

namespace mxtrain::executor {

// Bytes [begin, end) of an address space: 0 is the arena, k > 0 the k-th outer array.
struct ByteRange {
  int space = 0;
  int64_t begin = 0, end = 0;
};
struct Access {
  std::vector<ByteRange> reads, writes;
};

// `operations` stand in a legal order. Result: for each the earlier ones that it must follow, ascending, without those that follow from others.
MXTRAIN_API std::vector<std::vector<int>> FindEdges(const std::vector<Access>& operations);

}  // namespace mxtrain::executor
