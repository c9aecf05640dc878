// SPDX-License-Identifier: Apache-2.0
#pragma once
// What became of the passes that a GPU could capture as graphs (internal/captured_kernels.h): a
// step whose graphs are not replayed costs the host hundreds of launches.
#include <atomic>
#include <cstdint>

#include "mxtrain/ndarray/runtime.h"

namespace mxtrain::executor {

// Counts of one Runtime since its creation, of passes or parts of passes between host kernels.
struct Captures {
  std::atomic<int64_t> replays = 0;     // launches of a captured graph
  std::atomic<int64_t> uncaptured = 0;  // runs that launched kernel by kernel, first runs included
  std::atomic<int64_t> failures = 0;    // captures that failed; the first one is logged
};

// Lives as long as the Runtime. From any thread.
MXTRAIN_API Captures& CapturesOf(Runtime& runtime);

}  // namespace mxtrain::executor
