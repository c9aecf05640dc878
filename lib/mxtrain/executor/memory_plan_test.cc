// SPDX-License-Identifier: Apache-2.0
// The memory plan against independent code (tests/support/plan_reader.h), on random nets.
#include "mxtrain/executor/memory_plan.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "mxtrain/executor/freeze.h"
#include "tests/support/operator_case.h"
#include "tests/support/planned_run.h"
#include "tests/support/random_nets.h"

namespace mxtrain::test {
namespace {

using executor::BindRequest;
using executor::ExecGraph;
using executor::FindEdges;
using executor::GradReq;
using executor::MemoryPlan;
using executor::Strategy;

unsigned NumPlanNets() {
  return NumRandomNets(150);
}

// A net and a request to bind it.
struct PlanCase {
  SmallNet net;
  Symbol symbol;
  BindRequest request;
};

BindRequest RandomRequest(const SmallNet& net, const Symbol& symbol, std::mt19937& random) {
  BindRequest request = RequestFor(net, symbol);
  request.fuse = random() % 4 != 0;
  request.reference_kernels = random() % 4 == 0;
  for (auto& [name, req] : request.grad_req) {
    const auto choice = random() % 6;
    req = choice == 0 ? GradReq::kNull : choice == 1 ? GradReq::kAdd : GradReq::kWrite;
  }
  for (const auto& [name, shape] : net.data) {
    if (request.inputs.contains(name) && random() % 3 == 0)
      request.grad_req[name] = random() % 2 ? GradReq::kWrite : GradReq::kAdd;
  }
  if (random() % 5 == 0) {
    request.is_train = false;
    request.grad_req.clear();
  }
  return request;
}

std::vector<PlanCase> Cases(unsigned random_nets = NumPlanNets()) {
  std::vector<PlanCase> cases;
  for (const SmallNet& net : SmallNets(TestRegistry())) {
    cases.push_back({net, net.losses, RequestFor(net, net.losses)});
    cases.push_back({net, net.features, RequestFor(net, net.features)});
    cases.back().request.is_train = false;
    cases.back().request.grad_req.clear();
  }
  std::mt19937 random(5);
  for (unsigned seed = 0; seed < random_nets; ++seed) {
    const SmallNet net = RandomNet(TestRegistry(), seed, false);
    const Symbol& symbol = random() % 2 ? net.losses : net.features;
    cases.push_back({net, symbol, RandomRequest(net, symbol, random)});
  }
  return cases;
}

// The values of MakeInputs and SetParameters.
PlannedRun::ValuesOf BoundValues(const SmallNet& net) {
  return [&net](const std::string& name, const TShape& shape) {
    const bool label = net.labels.contains(name);
    std::vector<double> values =
        ValuesFor(name, shape.Size(), label && shape.ndim() == 1 ? net.classes : 0);
    if (label || net.data.contains(name)) return values;
    const bool positive = name.ends_with("_gamma") || name.ends_with("_var");
    for (double& v : values) v = positive ? 1.25 + v / 2 : v / 2;
    return values;
  };
}

// Neither poison nor any other NaN.
bool AllFinite(const std::map<std::string, std::string>& result) {
  for (const auto& [name, bytes] : result) {
    for (size_t at = 0; at + sizeof(float) <= bytes.size(); at += sizeof(float)) {
      float value;
      std::memcpy(&value, bytes.data() + at, sizeof(float));
      if (!std::isfinite(value)) return false;
    }
  }
  return true;
}

TEST_CASE(
    "no two contents that are live together share a byte, and the bound is what a plain sum "
    "gives") {
  const auto runtime = NewRuntime("naive", 1);
  int shared = 0, inplace = 0, aliases = 0, sums = 0;
  for (const PlanCase& c : Cases(2 * NumPlanNets())) {
    CAPTURE(c.net.name);
    const ExecGraph graph = RunPasses(c.symbol.graph(), c.request, *runtime);
    for (const Strategy strategy : {Strategy::kShare, Strategy::kFull}) {
      const MemoryPlan plan = PlanMemory(graph, c.request, strategy);
      const PlanReader reader(graph, plan);
      for (const std::string& fault : reader.Faults()) FAIL_CHECK(fault);
      CHECK(reader.LowerBound() == plan.lower_bound);
      CHECK(plan.arena_bytes >= plan.lower_bound);
      int64_t sum = 0;
      for (const auto& b : plan.buffers) sum += b.external ? 0 : b.bytes;
      shared += plan.arena_bytes < sum;
      for (size_t id = 0; id < graph.nodes.size(); ++id) {
        for (size_t i = 0; i < plan.inplace[id].size(); ++i) {
          inplace += plan.inplace[id][i];
          aliases += plan.aliased[id][i];
          sums += static_cast<bool>(graph.nodes[id].adds_to[i]);
        }
      }
    }
  }
  // The nets contain the cases that the plan handles.
  const int nets = static_cast<int>(NumPlanNets());
  CHECK(shared > nets / 2);
  CHECK(inplace > nets / 2);
  CHECK(aliases > nets / 2);
  CHECK(sums > nets / 2);
}

TEST_CASE("a plan with one buffer moved onto a live one is detected") {
  const auto runtime = NewRuntime("naive", 1);
  for (const PlanCase& c : Cases(10)) {
    CAPTURE(c.net.name);
    const ExecGraph graph = RunPasses(c.symbol.graph(), c.request, *runtime);
    const MemoryPlan plan = PlanMemory(graph, c.request, Strategy::kFull);
    for (size_t a = 0; a < plan.buffers.size(); ++a) {
      for (size_t b = 0; b < a; ++b) {
        const executor::Buffer &x = plan.buffers[a], &y = plan.buffers[b];
        if (x.external || y.external || x.bytes == 0 || y.bytes == 0 || x.last < y.first ||
            y.last < x.first)
          continue;
        MemoryPlan moved = plan;
        moved.buffers[a].offset = y.offset;
        CHECK_FALSE(PlanReader(graph, moved).Faults().empty());
      }
    }
  }
}

TEST_CASE(
    "runs in any legal order, with every dead byte poisoned, equal the run without sharing bit for "
    "bit" *
    doctest::test_suite("long")) {
  const auto runtime = NewRuntime("threaded", 1);
  std::mt19937 random(6);
  for (const PlanCase& c : Cases()) {
    CAPTURE(c.net.name);
    const ExecGraph graph = RunPasses(c.symbol.graph(), c.request, *runtime);
    const MemoryPlan apart = PlanApart(graph, c.request);
    PlannedRun naive(*runtime, graph, apart, c.request.is_train, BoundValues(c.net));
    const auto expected = naive.Run(SerialOrder(naive.size()));
    CHECK(AllFinite(expected));
    for (const Strategy strategy : {Strategy::kShare, Strategy::kFull}) {
      const MemoryPlan plan = PlanMemory(graph, c.request, strategy);
      PlannedRun run(*runtime, graph, plan, c.request.is_train, BoundValues(c.net));
      const auto edges = FindEdges(run.accesses());
      const bool serial_equal = run.Run(SerialOrder(run.size())) == expected;
      CHECK(serial_equal);
      for (int i = 0; i < 3; ++i) {
        const bool equal = run.Run(RandomOrder(edges, random)) == expected;
        CHECK(equal);
      }
    }
  }
}

TEST_CASE("an executor gives what the run without sharing gives") {
  for (const char* engine : {"naive", "threaded"}) {
    const auto runtime = NewRuntime(engine, 1);
    for (const PlanCase& c : Cases(20)) {
      CAPTURE(c.net.name);
      const auto executor = Executor::SimpleBind(*runtime, c.symbol, c.request);
      const MemoryPlan apart = PlanApart(executor->graph(), c.request);
      PlannedRun naive(*runtime, executor->graph(), apart, c.request.is_train, BoundValues(c.net));
      const auto expected = naive.Run(SerialOrder(naive.size()));
      SetParameters(*executor);
      for (const auto& [name, grad] : executor->grads()) NDArray(grad).Fill(0.5);
      std::vector<NDArray> heads;
      for (const NodeEntry& e : executor->graph().head_grads) {
        if (!e) continue;
        heads.emplace_back(*runtime, executor->graph().spec(e).shape);
        SetValues(heads.back(),
                  BoundValues(c.net)(executor->graph().nodes[e.node].name, heads.back().shape()));
      }
      executor->Forward(MakeInputs(*runtime, c.net, executor->input_names()));
      if (c.request.is_train && !executor->grads().empty()) executor->Backward(heads);
      auto same = [&](const std::string& name, const NDArray& array) {
        CAPTURE(name);
        std::string bytes(static_cast<size_t>(array.shape().Size() * SizeOf(array.dtype())), ' ');
        array.CopyToHost(bytes.data(), static_cast<int64_t>(bytes.size()));
        const bool equal = bytes == expected.at(name);
        CHECK(equal);
      };
      for (size_t i = 0; i < executor->outputs().size(); ++i)
        same(format("output {}", i), executor->outputs()[i]);
      for (const auto& [name, grad] : executor->grads()) same("gradient of " + name, grad);
      for (const auto& [name, state] : executor->auxs()) same(name, state);
    }
  }
}

TEST_CASE("the edges order every conflict, and without any one of them some conflict is open") {
  const auto runtime = NewRuntime("naive", 1);
  size_t cut = 0;
  for (const PlanCase& c : Cases()) {
    CAPTURE(c.net.name);
    const ExecGraph graph = RunPasses(c.symbol.graph(), c.request, *runtime);
    const MemoryPlan plan = PlanMemory(graph, c.request, Strategy::kFull);
    const PlannedRun run(*runtime, graph, plan, c.request.is_train, BoundValues(c.net));
    auto edges = FindEdges(run.accesses());
    const auto conflicts = Conflicts(PlanReader(graph, plan).Uses(c.request.is_train));
    CHECK_FALSE(FirstUnordered(conflicts, edges));
    for (std::vector<int>& before : edges) {
      const std::vector<int> kept = before;
      for (const int removed : kept) {
        std::erase(before, removed);
        CHECK(FirstUnordered(conflicts, edges));
        before = kept;
        ++cut;
      }
    }
  }
  CHECK(cut > 10 * NumPlanNets());
}

// An order that respects `edges` and runs `late` as late as possible.
std::vector<int> OrderWithLate(const std::vector<std::vector<int>>& edges, int late) {
  std::vector<bool> follows(edges.size());
  std::vector<int> order, rest;
  for (int op = 0; op < static_cast<int>(edges.size()); ++op) {
    follows[op] = op == late || std::any_of(edges[op].begin(), edges[op].end(),
                                            [&](int before) { return follows[before]; });
    (follows[op] ? rest : order).push_back(op);
  }
  order.insert(order.end(), rest.begin(), rest.end());
  return order;
}

TEST_CASE("a run in an order that one missing edge would allow gives other numbers" *
          doctest::test_suite("long")) {
  const auto runtime = NewRuntime("threaded", 1);
  int tried = 0, noticed = 0;
  for (const SmallNet& net : SmallNets(TestRegistry())) {
    const BindRequest request = RequestFor(net, net.losses);
    const ExecGraph graph = RunPasses(net.losses.graph(), request, *runtime);
    const MemoryPlan plan = PlanMemory(graph, request, Strategy::kFull);
    PlannedRun run(*runtime, graph, plan, true, BoundValues(net));
    auto edges = FindEdges(run.accesses());
    const auto expected = run.Run(SerialOrder(run.size()));
    for (std::vector<int>& before : edges) {
      const std::vector<int> kept = before;
      for (const int removed : kept) {
        std::erase(before, removed);
        const std::vector<int> order = OrderWithLate(edges, removed);
        before = kept;
        ++tried;
        noticed += run.Run(order) != expected;
      }
    }
  }
  // Two kernels that share nothing but a scratch space may change places unnoticed.
  CHECK(tried > 50);
  CHECK(noticed > tried * 9 / 10);
}

TEST_CASE(
    "gradients of random nets are the central differences of Forward along a random direction, in "
    "double") {
  const auto runtime = NewRuntime("naive", 1);
  for (unsigned seed = 1000; seed < 1000 + NumPlanNets(); ++seed) {
    const SmallNet net = RandomNet(TestRegistry(), seed, true);
    CAPTURE(net.name);
    BindRequest request = RequestFor(net, net.features, DType::kFloat64);
    request.reference_kernels = true;
    if (request.grad_req.empty()) continue;  // a net without parameters
    const auto executor = BindWithValues(*runtime, net.features, request);
    const auto inputs = MakeInputs(*runtime, net, executor->input_names(), DType::kFloat64);
    std::vector<NDArray> heads, wanted;
    for (size_t i = 0; i < executor->outputs().size(); ++i) {
      const NDArray& output = executor->outputs()[i];
      heads.emplace_back(*runtime, output.shape(), DType::kFloat64);
      SetValues(heads.back(), ValuesFor(format("head {}", i), output.shape().Size()));
      if (executor->graph().head_grads[i]) wanted.push_back(heads.back());
    }
    executor->Forward(inputs);
    executor->Backward(wanted);
    double slope = 0;
    std::map<std::string, std::vector<double>> start, direction;
    for (const auto& [name, grad] : executor->grads()) {
      const std::vector<double> gradient = GetValues(grad);
      start[name] = GetValues(executor->arg(name));
      direction[name] = ValuesFor("direction " + name, grad.shape().Size());
      for (size_t i = 0; i < gradient.size(); ++i) slope += gradient[i] * direction[name][i];
    }
    const auto loss_at = [&](double step) {
      for (const auto& [name, from] : start) {
        std::vector<double> moved = from;
        for (size_t i = 0; i < moved.size(); ++i) moved[i] += step * direction[name][i];
        SetValues(executor->arg(name), moved);
      }
      executor->Forward(inputs);
      double sum = 0;
      for (size_t i = 0; i < heads.size(); ++i) {
        const std::vector<double> out = GetValues(executor->outputs()[i]),
                                  head = GetValues(heads[i]);
        for (size_t k = 0; k < out.size(); ++k) sum += out[k] * head[k];
      }
      return sum;
    };
    constexpr double kDelta = 1e-6;
    CHECK(slope == doctest::Approx((loss_at(kDelta) - loss_at(-kDelta)) / (2 * kDelta))
                       .epsilon(1e-5)
                       .scale(1));
  }
}

}  // namespace
}  // namespace mxtrain::test
