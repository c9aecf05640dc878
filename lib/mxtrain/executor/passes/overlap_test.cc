// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>

#include "mxtrain/device/cpu/onednn/bfloat16.h"
#include "mxtrain/executor/internal/order.h"
#include "tests/support/layers.h"
#include "tests/support/operator_case.h"
#include "tests/support/planned_run.h"
#include "tests/support/random_nets.h"

namespace mxtrain::test {
namespace {

using executor::BindRequest;
using executor::ExecGraph;
using executor::MemoryPlan;
using executor::Strategy;

std::unique_ptr<Runtime> WithWorkers(int workers) {
  return NewRuntime("naive", workers, 3, workers);  // teams of one thread
}

// [later][earlier]: a path of edges leads from the earlier to the later operation.
std::vector<std::vector<bool>> Ordered(const std::vector<std::vector<int>>& edges) {
  std::vector<std::vector<bool>> ordered(edges.size(), std::vector<bool>(edges.size()));
  for (size_t b = 0; b < edges.size(); ++b) {
    for (int edge : edges[b]) {
      const auto a = static_cast<size_t>(edge);
      ordered[b][a] = true;
      for (size_t k = 0; k < a; ++k) ordered[b][k] = ordered[b][k] || ordered[a][k];
    }
  }
  return ordered;
}

TEST_CASE(
    "what runs side by side is not ordered by the bytes of the plan, and any legal order gives the "
    "bits of one worker") {
  std::mt19937 random(9);
  const auto single = WithWorkers(1);
  int beside = 0;
  for (unsigned seed = 0; seed < NumRandomNets(100); ++seed) {
    const SmallNet net = RandomNet(TestRegistry(), seed, false);
    CAPTURE(net.name);
    BindRequest request = RequestFor(net, seed % 2 ? net.losses : net.features);
    request.is_train = seed % 3 != 0;
    if (!request.is_train) request.grad_req.clear();
    const Symbol& symbol = seed % 2 ? net.losses : net.features;
    const auto values = [&net](const std::string& name, const TShape& shape) {
      return ValuesFor(name, shape.Size(),
                       net.labels.contains(name) && shape.ndim() == 1 ? net.classes : 0);
    };
    const ExecGraph serial = RunPasses(symbol.graph(), request, *single);
    const MemoryPlan apart = PlanApart(serial, request);
    PlannedRun naive(*single, serial, apart, request.is_train, values);
    const auto expected = naive.Run(SerialOrder(naive.size()));
    for (int workers : {2, 3}) {
      const auto runtime = WithWorkers(workers);
      const ExecGraph graph = RunPasses(symbol.graph(), request, *runtime);
      const MemoryPlan plan = PlanMemory(graph, request, Strategy::kFull);
      for (const std::string& fault : PlanReader(graph, plan).Faults()) FAIL_CHECK(fault);
      PlannedRun run(*runtime, graph, plan, request.is_train, values);
      const auto edges = FindEdges(run.accesses());
      const auto ordered = Ordered(edges);
      std::vector<size_t> operation;  // of each node
      for (size_t id = 0, next = 0; id < graph.nodes.size(); ++id)
        operation.push_back(plan.runs[id] ? next++ : next);
      for (size_t a = 0; a < graph.nodes.size(); ++a) {
        const int last = graph.nodes[a].last_beside;
        for (size_t b = a + 1; last >= 0 && b <= static_cast<size_t>(last); ++b) {
          if (!plan.runs[a] || !plan.runs[b]) continue;
          CAPTURE(graph.nodes[a].name);
          CAPTURE(graph.nodes[b].name);
          const bool waits = ordered[operation[b]][operation[a]];
          CHECK_FALSE(waits);
          ++beside;
        }
      }
      const bool equal = run.Run(RandomOrder(edges, random)) == expected;
      CHECK(equal);
    }
  }
  CHECK(beside > static_cast<int>(NumRandomNets(100)));
}

struct PlannedOrder {
  std::vector<std::string> order;
  int64_t arena = 0;
};

PlannedOrder PlanFor(const Symbol& net, const BindRequest& request, int workers) {
  const auto runtime = WithWorkers(workers);
  const ExecGraph graph = RunPasses(net.graph(), request, *runtime);
  PlannedOrder planned{{}, PlanMemory(graph, request, Strategy::kFull).arena_bytes};
  for (const auto& node : graph.nodes) {
    if (!node.is_variable()) planned.order.push_back(node.name);
  }
  return planned;
}

BindRequest ReferenceEvaluation() {
  BindRequest request;
  request.is_train = false;
  request.reference_kernels = true;
  request.inputs = {"data"};
  request.shapes = {{"data", TShape{16, 16}}};
  return request;
}

TEST_CASE("branches are started in turn, and their results do not share bytes") {
  const Symbol data = Symbol::Variable("data");
  const auto branch = [&](const std::string& name) {
    return Dense(name + "3", Dense(name + "2", Dense(name + "1", data, 16), 16), 16);
  };
  const Symbol net = Symbol::Create(TestRegistry(), "elemwise_add", "sum", {},
                                    std::vector<Symbol>{branch("a"), branch("b")});
  const int64_t bytes = 16 * 16 * 4;
  const PlannedOrder one = PlanFor(net, ReferenceEvaluation(), 1),
                     two = PlanFor(net, ReferenceEvaluation(), 2);
  CHECK(one.order == std::vector<std::string>{"a1", "a2", "a3", "b1", "b2", "b3", "sum"});
  CHECK(one.arena == 3 * bytes);
  CHECK(two.order == std::vector<std::string>{"a1", "b1", "a2", "b2", "a3", "b3", "sum"});
  CHECK(two.arena == 4 * bytes);
}

TEST_CASE("what aliases its input takes no worker") {
  const Symbol data = Symbol::Variable("data");
  const Symbol flat = Symbol::Create(TestRegistry(), "Flatten", "flat", {}, std::vector{data});
  const Symbol net =
      Symbol::Create(TestRegistry(), "elemwise_add", "sum", {},
                     std::vector{Dense("b", flat, 16), Dense("a2", Dense("a1", data, 16), 16)});
  const std::vector<std::string> order = {"flat", "b", "a1", "a2", "sum"};
  CHECK(PlanFor(net, ReferenceEvaluation(), 1).order == order);
  CHECK(PlanFor(net, ReferenceEvaluation(), 2).order == order);
}

TEST_CASE("a gradient that is not requested takes no time") {
  Symbol a = Symbol::Variable("data"), b = a;
  for (int i = 0; i < 3; ++i) a = Dense(format("a{}", i), a, 16);
  for (int i = 0; i < 2; ++i) b = Dense(format("b{}", i), b, 16);
  const Symbol net =
      Symbol::Create(TestRegistry(), "elemwise_add", "sum", {}, std::vector<Symbol>{a, b});
  BindRequest request = ReferenceEvaluation();
  request.is_train = true;
  for (const char* name : {"a0_weight", "b0_weight", "b1_weight"})
    request.grad_req[name] = executor::GradReq::kWrite;
  const PlannedOrder two = PlanFor(net, request, 2);
  const auto position = [&](const char* name) {
    return std::find(two.order.begin(), two.order.end(), name) - two.order.begin();
  };
  // a2 has one gradient, b1 has two.
  CHECK(position("a1_backward") < position("b0_backward"));
  CHECK(position("b0_backward") < position("a0_backward"));
}

TEST_CASE("few weights are converted before they are read") {
  Symbol chain = Symbol::Variable("data");
  for (int i = 0; i < 12; ++i) {
    chain = Symbol::Create(
        TestRegistry(), "Convolution", format("conv{}", i),
        {{"num_filter", "32"}, {"kernel", "(3, 3)"}, {"pad", "(1, 1)"}, {"no_bias", "True"}},
        std::vector<Symbol>{chain});
  }
  const int64_t weight_bytes = 32 * 32 * 3 * 3 * 4;
  BindRequest cast;
  cast.inputs = {"data"};
  cast.shapes = {{"data", TShape{4, 32, 32, 32}}};  // one conversion is much faster than one layer
  BindRequest trained = cast;
  for (const std::string& name : chain.ListArguments()) {
    if (name != "data") trained.grad_req[name] = executor::GradReq::kWrite;
  }
  cast.reference_kernels = true;
  cast.amp = DType::kBfloat16;
  BindRequest mixed = trained;
  mixed.amp = DType::kBfloat16;
  std::vector<BindRequest> requests = {cast, trained};
  if (WhyNoBfloat16().empty()) requests.push_back(mixed);
  for (const BindRequest& request : requests) {
    CAPTURE(request.reference_kernels);
    CAPTURE(request.amp.has_value());
    const int64_t one = PlanFor(chain, request, 1).arena, two = PlanFor(chain, request, 2).arena;
    CHECK(two <= one + 3 * weight_bytes);
  }
}

TEST_CASE("a chain and a budget change nothing") {
  Symbol chain = Symbol::Variable("data");
  for (int i = 0; i < 4; ++i) chain = Dense(format("fc{}", i), chain, 16);
  const PlannedOrder one = PlanFor(chain, ReferenceEvaluation(), 1),
                     two = PlanFor(chain, ReferenceEvaluation(), 2);
  CHECK(one.order == two.order);
  CHECK(one.arena == two.arena);

  for (const SmallNet& net : SmallNets(TestRegistry())) {
    CAPTURE(net.name);
    BindRequest request = RequestFor(net, net.losses);
    request.memory_budget.bytes = int64_t{1} << 40;
    const PlannedOrder limited = PlanFor(net.losses, request, 1),
                       also = PlanFor(net.losses, request, 3);
    CHECK(limited.order == also.order);
    CHECK(limited.arena == also.arena);
  }
}

}  // namespace
}  // namespace mxtrain::test
