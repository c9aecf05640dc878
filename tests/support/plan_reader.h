#pragma once
// What a memory plan means, worked out anew from the graph, the operators and the offsets: which contents there are, who writes and reads
// each, and where its bytes lie. Shares no code with executor/passes/, so it can testify against it.
#include <climits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mxtrain/executor/memory_plan.h"

namespace mxtrain::test {

// What one node writes at one time: an output with all its aliases, a workspace, temporary space; or an array from outside.
struct Content {
  static constexpr int kForever = INT_MAX;
  std::string name;
  int first = 0;             // position of the node that makes it; -1: there before the first
  int last = 0;              // of its last reader; kForever: somebody outside reads it
  std::vector<int> readers;  // nodes that run, ascending, once for every input that is this content
  int64_t bytes = 0;
  int space = 0;  // 0: the arena; else an outer array
  int64_t offset = 0;
  int onto = -1;       // the content whose bytes it takes over: made in place of it, or by adding to it
  bool state = false;  // an auxiliary state: in training its readers write it too
};

class PlanReader {
 public:
  PlanReader(const executor::ExecGraph& graph, const executor::MemoryPlan& plan);

  const std::vector<Content>& contents() const { return contents_; }
  // What is wrong with the plan: bytes that two contents want at one time, takings-over that nobody may make, places outside the arena.
  std::vector<std::string> Faults() const;
  // The largest sum of bytes, counted in multiples of 64, of the contents of the arena that are alive at one position.
  int64_t LowerBound() const;

  // Bytes that a node which runs touches; nodes are numbered as they run.
  struct Use {
    int space;
    int64_t begin, end;
    bool writes;
  };
  std::vector<std::vector<Use>> Uses(bool is_train) const;
  // Of each node that runs: the contents that it makes or reads.
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
  std::vector<int> order_;                    // [node]: as which it runs; -1: it does not
  std::vector<std::vector<int>> contents_of_;
  std::vector<std::string> found_;  // faults met while reading
};

// Pairs (earlier, later) of operations that touch a common byte, one of them writing.
std::vector<std::pair<int, int>> Conflicts(const std::vector<std::vector<PlanReader::Use>>& operations);
// The first of these pairs between which no path of edges leads; `edges` as FindEdges gives them.
std::optional<std::pair<int, int>> FirstUnordered(const std::vector<std::pair<int, int>>& conflicts,
                                                  const std::vector<std::vector<int>>& edges);

}  // namespace mxtrain::test
