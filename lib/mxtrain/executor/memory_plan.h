// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory planning: which entries share bytes, and their offsets in the arena. The executor runs the
// same plan that `mxtrain plan` prints.
#include <vector>

#include "mxtrain/executor/passes.h"

namespace mxtrain::executor {

enum class Strategy { kInplace, kShare, kFull };

// Entries that share one piece of memory: an output and what runs in place on it or aliases it.
struct Buffer {
  int64_t bytes = 0;
  // Positions in node order, inclusive: written first, read last, or with several CPU workers the
  // last node that may run beside the writer or a reader.
  int first = 0, last = 0;
  int64_t offset = -1;  // in the arena; -1: unplanned or external
  // External buffers are outside the arena: variables, their gradients, heads.
  bool external = false;
  int arena = 0;  // index of its device's arena
};

// What is known of an arena's size: it equals the lower bound; it exceeds the bound, but an
// exhaustive search proved that these buffers need it; or the search exhausted its work limit.
enum class Optimality { kMeetsBound, kProvenSmallest, kNotProven };

// The memory of one device that the kernels of a net share over time.
struct ArenaPlan {
  Context ctx;
  int64_t bytes = 0;
  int64_t lower_bound = 0;  // peak of live bytes over time, of its buffers
};

struct MemoryPlan {
  static constexpr int kNoTempSpace = -2, kUnknownSize = -3;

  std::vector<Buffer> buffers;
  std::vector<std::vector<int>> buffer_of;  // [node][output]; -1: none (not requested)
  std::vector<int> workspace_of;            // [node]; -1: none
  // [node][request]; -1: zero bytes, or the host kernel's own; kNoTempSpace: not a kTempSpace;
  // kUnknownSize: not in the plan, taken from the pool of the ResourceManager when the node runs.
  std::vector<std::vector<int>> temp_space_of;
  std::vector<std::vector<bool>> aliased;  // [node][output]: identity of an input, needs no run
  std::vector<std::vector<bool>> inplace;  // [node][output]: runs in place on an input
  std::vector<bool> runs;                  // [node]: has work to do
  std::vector<ArenaPlan> arenas;           // one per device, in order of contexts
  int64_t arena_bytes = 0;                 // of all arenas
  int64_t lower_bound = 0;                 // of all arenas
  Optimality optimality = Optimality::kMeetsBound;
};

MXTRAIN_API MemoryPlan PlanMemory(const ExecGraph& graph, const BindRequest& request,
                                  Strategy strategy);
// The same without offsets and bytes of arenas: buffers, lifetimes and the lower bounds.
MXTRAIN_API MemoryPlan PlanLifetimes(const ExecGraph& graph, Strategy strategy = Strategy::kFull);

struct Placement {
  int64_t bytes = 0;
  Optimality optimality = Optimality::kMeetsBound;
};
// Places buffers such that no two with overlapping [first, last] share a byte. Tries several
// best-fit orders and repairs, then an exact search while the result exceeds the bound. Offsets are
// multiples of 64. Deterministic.
MXTRAIN_API Placement AssignOffsets(std::vector<Buffer>* buffers, int64_t lower_bound);
// Largest sum of bytes (rounded up to 64) live at one position. Independent of AssignOffsets.
MXTRAIN_API int64_t LowerBound(const std::vector<Buffer>& buffers);
// Bytes of every output of the unfused graph in plain layout, and of its gradient if it has one,
// without any sharing. Excludes external buffers and the terms of summed gradients.
MXTRAIN_API int64_t NoneBytes(const Graph& graph, const BindRequest& request, Runtime& runtime);

struct MemorySummary {
  int64_t none_bytes = 0, inplace_bytes = 0, share_bytes = 0, full_bytes = 0, lower_bound_bytes = 0;
  Optimality optimality = Optimality::kMeetsBound;  // of full_bytes
  std::vector<ArenaPlan> arenas;                    // of full_bytes
  int unsized_requests = 0;  // of temporary space whose size is known only at run time: in no sum
};
MXTRAIN_API MemorySummary SummarizeMemory(const Graph& graph, const BindRequest& request,
                                          Runtime& runtime);

}  // namespace mxtrain::executor
