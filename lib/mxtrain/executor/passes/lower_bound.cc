// SPDX-License-Identifier: Apache-2.0
// LowerBound: no plan for these buffers can be smaller than the peak of live bytes.
#include <algorithm>
#include <map>

#include "mxtrain/executor/memory_plan.h"

namespace mxtrain::executor {

int64_t LowerBound(const std::vector<Buffer>& buffers) {
  // Position -> bytes that become live there minus those that ended before it.
  std::map<int, int64_t> change;
  for (const Buffer& buffer : buffers) {
    if (buffer.external) continue;
    const int64_t stored = (buffer.bytes + 63) & ~int64_t{63};
    change[buffer.first] += stored;
    change[buffer.last + 1] -= stored;
  }
  int64_t alive = 0, most = 0;
  for (const auto& [position, bytes] : change) {
    alive += bytes;
    most = std::max(most, alive);
  }
  return most;
}

}  // namespace mxtrain::executor
