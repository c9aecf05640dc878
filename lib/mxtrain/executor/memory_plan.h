#pragma once
// Memory planning: which entries share bytes, and where in the arena they lie. The executor runs the very object that `mxtrain plan` prints.
#include <vector>

#include "mxtrain/executor/passes.h"

namespace mxtrain::executor {

enum class Strategy { kInplace, kShare, kFull };

// Entries that are one piece of memory: an output and what runs in place on it, or an alias of it.
struct Buffer {
  int64_t bytes = 0;
  int first = 0, last = 0;   // positions in node order, inclusive: written first, read last
  int64_t offset = -1;       // in the arena; -1 while unplanned, and for outer arrays
  // Outer arrays are not of the arena: variables, their gradients, heads.
  bool outer = false;
};

// What is known of an arena's size: it is the lower bound; it is above the bound, and an exhaustive search has shown that these buffers fit into no
// smaller one; or the search ran out of its work.
enum class Optimality { kMeetsBound, kProvenSmallest, kNotProven };

struct MemoryPlan {
  static constexpr int kNoTempSpace = -2;

  std::vector<Buffer> buffers;
  std::vector<std::vector<int>> buffer_of;        // [node][output]; -1: no bytes (not wanted)
  std::vector<int> workspace_of;                  // [node]; -1: none
  std::vector<std::vector<int>> temp_space_of;    // [node][request]; -1: of no bytes; kNoTempSpace: not a kTempSpace
  std::vector<std::vector<bool>> aliased;         // [node][output]: identity of an input, needs no run
  std::vector<std::vector<bool>> inplace;         // [node][output]: runs in place on an input
  std::vector<bool> runs;                         // [node]: has work to do
  int64_t arena_bytes = 0;
  int64_t lower_bound = 0;                        // largest sum of live bytes over time, of these buffers
  Optimality optimality = Optimality::kMeetsBound;
};

MXTRAIN_API MemoryPlan PlanMemory(const ExecGraph& graph, const BindRequest& request, Strategy strategy);
// The same without offsets and arena_bytes: which buffers there are, how long they live, and the lower bound.
MXTRAIN_API MemoryPlan PlanLifetimes(const ExecGraph& graph, Strategy strategy = Strategy::kFull);

struct Placement {
  int64_t bytes = 0;
  Optimality optimality = Optimality::kMeetsBound;
};
// Places buffers so that no two with overlapping [first, last] share a byte. Several best-fit orders and repairs, then an exact search while the
// result is above the bound. Offsets are multiples of 64. Deterministic.
MXTRAIN_API Placement AssignOffsets(std::vector<Buffer>* buffers, int64_t lower_bound);
// Largest sum of bytes (rounded up to 64) alive at one position. Code of its own: it shares nothing with AssignOffsets.
MXTRAIN_API int64_t LowerBound(const std::vector<Buffer>& buffers);
// Bytes of every output of the unfused graph in plain layout, and of the gradient of each that has one, each in memory of its own. Outer arrays are
// left out; so are the terms of gradients that are sums.
MXTRAIN_API int64_t NoneBytes(const Graph& graph, const BindRequest& request, Runtime& runtime);

struct MemorySummary {
  int64_t none_bytes = 0, inplace_bytes = 0, share_bytes = 0, full_bytes = 0, lower_bound_bytes = 0;
  Optimality optimality = Optimality::kMeetsBound;  // of full_bytes
};
MXTRAIN_API MemorySummary SummarizeMemory(const Graph& graph, const BindRequest& request, Runtime& runtime);

}  // namespace mxtrain::executor
