// SPDX-License-Identifier: Apache-2.0
#include "tests/support/planned_run.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "mxtrain/ndarray/runtime.h"
#include "tests/support/small_nets.h"

namespace mxtrain::test {
namespace {

constexpr int kPoison = 0xff;

}  // namespace

PlannedRun::PlannedRun(Runtime& runtime, const executor::ExecGraph& graph,
                       const executor::MemoryPlan& plan, bool is_train, ValuesOf values)
    : runtime_(runtime),
      plan_(plan),
      values_(std::move(values)),
      reader_(graph, plan),
      external_of_(plan.buffers.size(), -1) {
  state_.random = {3, 1};
  for (int id = 0; id < static_cast<int>(graph.nodes.size()); ++id) {
    for (int i = 0; i < static_cast<int>(graph.nodes[id].specs.size()); ++i) {
      const int buffer = plan.buffer_of[id][i];
      if (buffer < 0 || !plan.buffers[buffer].external || external_of_[buffer] >= 0) continue;
      const TensorSpec& spec = graph.nodes[id].specs[i];
      external_of_[buffer] = static_cast<int>(externals_.size());
      externals_.emplace_back(runtime, spec.shape, spec.type, Context::cpu(), spec.layout);
      const bool variable = graph.nodes[id].is_variable();
      names_.push_back(variable ? graph.nodes[id].name : "");
      filled_.push_back(variable);
    }
  }
  auto name = [&](NodeEntry e, const std::string& what) {
    if (e) names_[external_of_[plan.buffer_of[e.node][e.index]]] = what;
  };
  for (size_t i = 0; i < graph.heads.size(); ++i) name(graph.heads[i], format("output {}", i));
  for (size_t k = 0; k < graph.gradients.size(); ++k)
    name(graph.gradients[k], "gradient of " + graph.nodes[graph.arguments[k]].name);
  if (plan.arena_bytes > 0)
    arena_ = NDArray(runtime, TShape{plan.arena_bytes}, DType::kUint8, Context::cpu(), Layout(),
                     "arena");
  kernels_ =
      std::make_unique<executor::KernelSet>(graph, plan, external_of_, runtime, is_train, state_);
}

std::vector<executor::Access> PlannedRun::accesses() const {
  std::vector<executor::Access> accesses;
  for (int k = 0; k < kernels_->size(); ++k) accesses.push_back(kernels_->access(k));
  return accesses;
}

void PlannedRun::FillExternal() {
  for (size_t i = 0; i < externals_.size(); ++i) {
    NDArray& array = externals_[i];
    if (!filled_[i]) {
      array.Fill(0.5);  // gradients may be accumulated
      continue;
    }
    NDArray plain(runtime_, array.shape(), array.dtype());
    SetValues(plain, values_(names_[i], array.shape()));
    array.CopyFrom(plain);
  }
  runtime_.engine().WaitForAll();
  for (size_t i = 0; i < externals_.size(); ++i)
    kernels_->SetExternal(static_cast<int>(i), externals_[i].data().data);
}

void PlannedRun::RunKernels(const std::vector<int>& order, RunContext ctx) {
  char* arena = arena_.empty() ? nullptr : static_cast<char*>(arena_.data().data);
  if (arena) std::memset(arena, kPoison, static_cast<size_t>(plan_.arena_bytes));
  kernels_->SetArena(arena);
  const std::vector<Content>& contents = reader_.contents();
  std::vector<int> users_left(contents.size());
  std::vector<bool> taken_over(contents.size());
  for (const std::vector<int>& used : reader_.contents_of()) {
    for (int content : used) ++users_left[content];
  }
  for (const Content& c : contents) {
    if (c.onto >= 0) taken_over[c.onto] = true;
  }
  for (int k : order) {
    kernels_->Run(k, ctx);
    for (int content : reader_.contents_of()[k]) {
      const Content& c = contents[content];
      if (--users_left[content] > 0 || c.space != 0 || taken_over[content]) continue;
      std::memset(arena + c.offset, kPoison, static_cast<size_t>(c.bytes));
    }
  }
}

std::map<std::string, std::string> PlannedRun::Run(const std::vector<int>& order) {
  FillExternal();
  const engine::VarHandle done = runtime_.engine().NewVar();
  engine::PushOptions options;
  options.name = "planned_run";
  runtime_.engine().PushSync([&](RunContext ctx) { RunKernels(order, ctx); }, {}, {{done}},
                             options);
  runtime_.engine().WaitForVar(done);
  runtime_.engine().DeleteVariable(done, {}, Context::cpu());
  std::map<std::string, std::string> result;
  for (size_t i = 0; i < externals_.size(); ++i) {
    if (names_[i].empty()) continue;
    std::string& bytes = result[names_[i]];
    bytes.resize(static_cast<size_t>(externals_[i].shape().Size() * SizeOf(externals_[i].dtype())));
    externals_[i].CopyToHost(bytes.data(), static_cast<int64_t>(bytes.size()));
  }
  return result;
}

std::vector<int> RandomOrder(const std::vector<std::vector<int>>& edges, std::mt19937& random) {
  std::vector<int> missing, ready, order;
  for (size_t op = 0; op < edges.size(); ++op) {
    missing.push_back(static_cast<int>(edges[op].size()));
    if (edges[op].empty()) ready.push_back(static_cast<int>(op));
  }
  while (!ready.empty()) {
    std::swap(ready[random() % ready.size()], ready.back());
    const int now = ready.back();
    ready.pop_back();
    order.push_back(now);
    for (size_t op = 0; op < edges.size(); ++op) {
      if (std::find(edges[op].begin(), edges[op].end(), now) != edges[op].end() &&
          --missing[op] == 0)
        ready.push_back(static_cast<int>(op));
    }
  }
  return order;
}

std::vector<int> SerialOrder(int operations) {
  std::vector<int> order(static_cast<size_t>(operations));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

executor::MemoryPlan PlanApart(const executor::ExecGraph& graph,
                               const executor::BindRequest& request) {
  executor::MemoryPlan plan = PlanMemory(graph, request, executor::Strategy::kShare);
  plan.arena_bytes = 0;
  for (executor::Buffer& b : plan.buffers) {
    if (b.external) continue;
    b.offset = plan.arena_bytes;
    plan.arena_bytes += (b.bytes + 63) / 64 * 64;
  }
  return plan;
}

}  // namespace mxtrain::test
