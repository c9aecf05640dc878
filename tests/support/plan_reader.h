// SPDX-License-Identifier: Apache-2.0
#pragma once
// The meaning of a memory plan, derived independently from the graph, the operators and the
// offsets: the contents, the writers and readers of each, and the places of its bytes. Shares no
// code with executor/passes/, so it can check it.
#include <climits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mxtrain/executor/memory_plan.h"

namespace mxtrain::test {

// What one node writes at one time: an output with all its aliases, a workspace, temporary space;
// or an external array.
struct Content {
  static constexpr int kForever = INT_MAX;
  std::string name;
  int first = 0;             // position of the node that creates it; -1: exists before the first
  int last = 0;              // of its last reader; kForever: read externally
  std::vector<int> readers;  // running nodes, ascending, one entry per input that is this content
  int64_t bytes = 0;
  int space = 0;  // 0: the arena; else an external buffer
  int64_t offset = 0;
  int onto = -1;  // the content whose bytes it takes over: created in place of it, or added to it
  bool state = false;  // an auxiliary state: in training its readers also write it
};

class PlanReader {
 public:
  PlanReader(const executor::ExecGraph& graph, const executor::MemoryPlan& plan);

  const std::vector<Content>& contents() const { return contents_; }
  // Errors of the plan: bytes that two contents need at the same time, forbidden takeovers, places
  // outside the arena.
  std::vector<std::string> Faults() const;
  // The largest sum of bytes, in multiples of 64, of arena contents that are alive at the same
  // position.
  int64_t LowerBound() const;

  // Bytes that a running node touches; nodes are numbered in running order.
  struct Use {
    int space;
    int64_t begin, end;
    bool writes;
  };
  std::vector<std::vector<Use>> Uses(bool is_train) const;
  // Of each running node: the contents that it creates or reads.
  const std::vector<std::vector<int>>& contents_of() const { return contents_of_; }

 private:
  bool Runs(int id) const;
  int AddContent(std::string name, int first, int buffer, int64_t bytes);
  void AddOutput(int id, int output);
  void AddScratch(int id);
  void ReadInputs(int id);
  NodeEntry AliasSource(int id, int output);
  NodeEntry InplaceSource(int id, int output);
  void CheckRange(const Content& c, std::vector<std::string>* faults) const;
  void CheckTakeOver(int taker, std::vector<std::string>* faults) const;

  const executor::ExecGraph& graph_;
  const executor::MemoryPlan& plan_;
  std::vector<Content> contents_;
  std::vector<std::vector<int>> content_of_;  // [node][output]; -1: none
  std::vector<int> order_;                    // [node]: position when running; -1: does not run
  std::vector<std::vector<int>> contents_of_;
  std::vector<std::string> found_;  // errors found while reading
};

// Pairs (earlier, later) of operations that touch a common byte, at least one of them writing.
std::vector<std::pair<int, int>> Conflicts(
    const std::vector<std::vector<PlanReader::Use>>& operations);
// The first of these pairs without a path of edges between them; `edges` as returned by FindEdges.
std::optional<std::pair<int, int>> FirstUnordered(const std::vector<std::pair<int, int>>& conflicts,
                                                  const std::vector<std::vector<int>>& edges);

}  // namespace mxtrain::test
