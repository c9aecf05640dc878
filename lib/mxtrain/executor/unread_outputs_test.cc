// SPDX-License-Identifier: Apache-2.0
// Outputs that nobody reads are not computed and have no memory.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "mxtrain/executor/memory_plan.h"
#include "tests/support/layers.h"
#include "tests/support/operator_case.h"
#include "tests/support/small_nets.h"

namespace mxtrain::test {
namespace {

using executor::BindRequest;
using executor::ExecGraph;
using executor::MemoryPlan;
using executor::Strategy;

constexpr int64_t kMaskBytes = 64 * 1000 * 4;

// Layer `drop` has a second output.
SmallNet DropNet(const std::string& op, const Kwargs& kwargs) {
  const Symbol first =
      Layer("FullyConnected", "first", {Symbol::Variable("data")}, {{"num_hidden", "1000"}});
  const Symbol drop = Layer(op, "drop", {first}, kwargs);
  const Symbol fc = Layer("FullyConnected", "fc", {drop[0]}, {{"num_hidden", "3"}});
  return {op, Layer("MakeLoss", "loss", {fc}), fc, {{"data", {64, 1000}}}, {}, 0};
}

struct DropPlan {
  MemoryPlan plan;
  bool requested = false;  // the second output

  int64_t BytesInArena() const {
    int64_t sum = 0;
    for (const auto& buffer : plan.buffers) sum += buffer.external ? 0 : buffer.bytes;
    return sum;
  }
};

DropPlan PlanOf(Runtime& runtime, const Graph& graph, const BindRequest& request) {
  const ExecGraph planned = RunPasses(graph, request, runtime);
  DropPlan result{PlanMemory(planned, request, Strategy::kFull)};
  for (size_t id = 0; id < planned.nodes.size(); ++id) {
    const auto& node = planned.nodes[id];
    if (node.name != "drop") continue;
    result.requested = node.req[1] != OpReqType::kNullOp;
    CHECK(result.requested == (result.plan.buffer_of[id][1] >= 0));
  }
  return result;
}

BindRequest DropRequest(const SmallNet& net, bool training) {
  BindRequest request = RequestFor(net, training ? net.losses : net.features);
  request.fuse = false;
  request.is_train = training;
  if (!training) request.grad_req.clear();
  return request;
}

TEST_CASE("Dropout's mask is not requested, unless it is an output or monitored") {
  const auto runtime = NewRuntime("naive", 1);
  const SmallNet net = DropNet("Dropout", {});
  for (const bool training : {false, true}) {
    CAPTURE(training);
    BindRequest request = DropRequest(net, training);
    Graph graph = (training ? net.losses : net.features).graph();
    const DropPlan lean = PlanOf(*runtime, graph, request);
    CHECK_FALSE(lean.requested);

    request.monitored = {"drop"};
    const DropPlan monitored = PlanOf(*runtime, graph, request);
    CHECK(monitored.requested);
    CHECK(monitored.BytesInArena() == lean.BytesInArena() + kMaskBytes);
    if (!training) {  // the layer runs in place, so the mask is the second array there
      CHECK(monitored.plan.arena_bytes == 2 * kMaskBytes);
      CHECK(lean.plan.arena_bytes < 2 * kMaskBytes);
    }

    request.monitored.clear();
    for (size_t id = 0; id < graph.nodes.size(); ++id) {
      if (graph.nodes[id].name == "drop") graph.heads.push_back({static_cast<int>(id), 1});
    }
    const DropPlan head = PlanOf(*runtime, graph, request);
    CHECK(head.requested);
    CHECK(head.BytesInArena() == lean.BytesInArena());
  }
}

TEST_CASE("an output that only a gradient reads is requested in training alone") {
  const auto runtime = NewRuntime("naive", 1);
  const SmallNet net = DropNet("LeakyReLU", {{"act_type", "rrelu"}});
  CHECK(PlanOf(*runtime, net.losses.graph(), DropRequest(net, true)).requested);
  CHECK_FALSE(PlanOf(*runtime, net.features.graph(), DropRequest(net, false)).requested);
}

TEST_CASE("a net gives the same bits whether its hidden outputs are requested or not") {
  const auto runtime = NewRuntime("naive", 1);
  std::vector<SmallNet> nets = SmallNets(TestRegistry());
  nets.push_back(DropoutNet(TestRegistry()));
  size_t unread = 0;
  for (const SmallNet& net : nets) {
    CAPTURE(net.name);
    BindRequest request = DropRequest(net, true);
    const auto run = [&](std::set<std::string>* seen) {
      const auto executor = BindWithValues(*runtime, net.losses, request);
      executor->SetMonitor([seen](const std::string& name, const TBlob&) { seen->insert(name); });
      executor->Step(MakeInputs(*runtime, net, executor->input_names()));
      runtime->engine().WaitForAll();
      return ResultOf(*executor);
    };
    std::set<std::string> seen, all;
    const Result lean = run(&seen);
    for (const Node& node : net.losses.graph().nodes) request.monitored.push_back(node.name);
    CHECK(run(&all) == lean);
    CHECK(std::includes(all.begin(), all.end(), seen.begin(), seen.end()));
    unread += all.size() - seen.size();
  }
  CHECK(unread >= 3);  // the mask, and the statistics of a batch norm
}

}  // namespace
}  // namespace mxtrain::test
