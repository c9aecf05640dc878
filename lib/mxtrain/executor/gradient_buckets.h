// SPDX-License-Identifier: Apache-2.0
#pragma once
// The gradients of a step in buckets, each of which is summed over devices while the next one is
// computed. A captured pass is cut between them.
#include <cstdint>
#include <string>
#include <vector>

#include "mxtrain/executor/passes.h"

namespace mxtrain::executor {

struct GradientBucket {
  std::vector<std::string> arguments;  // in the order in which their gradients become complete
  int64_t bytes = 0;                   // of the gradients
  int last = -1;                       // node that completes the bucket
};

// In the order of execution. Every bucket but the last has at least `bytes`.
MXTRAIN_API std::vector<GradientBucket> GradientBuckets(const ExecGraph& graph, int64_t bytes);

}  // namespace mxtrain::executor
