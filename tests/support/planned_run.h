// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs a planned graph kernel by kernel in a given order, with its own memory, which is poisoned
// wherever nothing is alive.
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "mxtrain/executor/kernels.h"
#include "tests/support/plan_reader.h"

namespace mxtrain::test {

class PlannedRun {
 public:
  // Numbers for a variable, by name and shape.
  using ValuesOf = std::function<std::vector<double>(const std::string& name, const TShape& shape)>;
  // `graph` and `plan` must outlive it.
  PlannedRun(Runtime& runtime, const executor::ExecGraph& graph, const executor::MemoryPlan& plan,
             bool is_train, ValuesOf values);

  int size() const { return kernels_->size(); }
  std::vector<executor::Access> accesses() const;
  // Runs every kernel once on the engine's compute lane, in `order`, a permutation. First all
  // external arrays are refilled, and every byte of the arena is poisoned (a NaN of every floating
  // type); the bytes of a content are poisoned again after its last user has run. Result: bytes of
  // heads, gradients and auxiliary states, plain, by name.
  std::map<std::string, std::string> Run(const std::vector<int>& order);

 private:
  void FillExternal();
  void RunKernels(const std::vector<int>& order, RunContext ctx);

  Runtime& runtime_;
  const executor::MemoryPlan& plan_;
  const ValuesOf values_;
  const PlanReader reader_;
  executor::StepState state_;
  std::vector<int> external_of_;  // [buffer]
  std::vector<NDArray> externals_;
  std::vector<std::string> names_;  // [external]; "" for unused ones
  std::vector<bool> filled_;        // [external]: a variable
  NDArray arena_;
  std::unique_ptr<executor::KernelSet> kernels_;
};

// A random order of operations that respects the edges (of FindEdges).
std::vector<int> RandomOrder(const std::vector<std::vector<int>>& edges, std::mt19937& random);
std::vector<int> SerialOrder(int operations);
// The plan without any sharing: no aliases, nothing in place, separate bytes for every buffer. Only
// accumulations share the place of their sum.
executor::MemoryPlan PlanApart(const executor::ExecGraph& graph,
                               const executor::BindRequest& request);

}  // namespace mxtrain::test
