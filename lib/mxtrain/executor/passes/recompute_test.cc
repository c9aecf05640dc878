// SPDX-License-Identifier: Apache-2.0
// Recomputation: any nodes may be recomputed, and only the memory changes.
#include "mxtrain/executor/internal/recompute.h"

#include <doctest/doctest.h>

#include <cinttypes>
#include <cstdio>
#include <random>

#include "mxtrain/base/error.h"
#include "tests/support/counted_square.h"
#include "tests/support/layers.h"
#include "tests/support/operator_case.h"
#include "tests/support/plan_reader.h"
#include "tests/support/planned_run.h"
#include "tests/support/random_nets.h"

namespace mxtrain::test {
namespace {

using executor::BindRequest;
using executor::ExecGraph;
using executor::MemoryPlan;
using executor::Strategy;

PlannedRun::ValuesOf PlainValues(const SmallNet& net) {
  return [&net](const std::string& name, const TShape& shape) {
    return ValuesFor(name, shape.Size(),
                     net.labels.contains(name) && shape.ndim() == 1 ? net.classes : 0);
  };
}

int CountCopies(const ExecGraph& graph) {
  int copies = 0;
  for (const auto& node : graph.nodes)
    copies += node.forward >= 0 && node.kind != Node::Kind::kBackward;
  return copies;
}

TEST_CASE("whatever is recomputed, outputs, gradients and auxiliary states are bit-identical") {
  auto registry = BuiltinOperators();
  AddCountedSquare(registry.get());
  RuntimeOptions options;
  options.threads = 1;
  Runtime runtime(options, registry);
  std::mt19937 random(11);
  int copies = 0;
  auto check = [&](const SmallNet& net) {
    CAPTURE(net.name);
    BindRequest request = RequestFor(net, net.losses);
    request.fuse = random() % 3 != 0;
    if (request.grad_req.empty()) return;
    const ExecGraph graph = RunPasses(net.losses.graph(), request, runtime);
    const MemoryPlan apart = PlanApart(graph, request);
    PlannedRun plain(runtime, graph, apart, true, PlainValues(net));
    const auto expected = plain.Run(SerialOrder(plain.size()));
    for (const unsigned share : {1u, 2u, 4u}) {  // all of them, half, a quarter
      std::vector<bool> again = executor::Repeatable(graph);
      for (size_t id = 0; id < again.size(); ++id) again[id] = again[id] && random() % share == 0;
      const ExecGraph twice = executor::RunAgain(graph, again);
      copies += CountCopies(twice);
      const MemoryPlan plan = PlanMemory(twice, request, Strategy::kFull);
      for (const std::string& fault : PlanReader(twice, plan).Faults()) FAIL_CHECK(fault);
      PlannedRun run(runtime, twice, plan, true, PlainValues(net));
      const bool equal = run.Run(SerialOrder(run.size())) == expected;
      CHECK(equal);
    }
  };
  for (const SmallNet& net : SmallNets(*registry)) check(net);
  for (unsigned seed = 0; seed < 60; ++seed) check(RandomNet(*registry, seed, false));
  check(SquareNet(*registry));  // counts its passes
  CHECK(copies > 300);
}

// Convolutions, batch norms, dropouts and, every other layer, a way around; `layers` deep.
Symbol DeepNet(int layers) {
  Symbol x = Symbol::Variable("data");
  for (int k = 0; k < layers; ++k) {
    const std::string name = "layer" + std::to_string(k);
    Symbol y = Layer("BatchNorm", name + "_bn", {x}, {{"fix_gamma", "False"}});
    y = Layer("Activation", name + "_relu", {y}, {{"act_type", "relu"}});
    y = Layer("Convolution", name + "_conv", {y},
              {{"num_filter", "8"}, {"kernel", "(3, 3)"}, {"pad", "(1, 1)"}});
    if (k % 3 == 2) y = Layer("Dropout", name + "_drop", {y}, {{"p", "0.3"}});
    x = k % 2 && k > 0 ? Layer("elemwise_add", name + "_sum", {x, y}) : y;
  }
  x = Layer("Flatten", "flat", {x});
  x = Layer("FullyConnected", "fc", {x}, {{"num_hidden", "4"}});
  return Layer("SoftmaxOutput", "softmax", {x});
}

TEST_CASE(
    "a deep net trains within a quarter of its plain plan, to the same bits; an impossible budget "
    "is rejected with the smallest possible one") {
  const auto runtime = NewRuntime("threaded", 1);
  const Symbol net = DeepNet(60);
  BindRequest request;
  request.namesake = 0;  // executors of one net are compared
  request.inputs = {"data", "softmax_label"};
  request.shapes = {{"data", TShape{2, 8, 12, 12}}, {"softmax_label", TShape{2}}};
  for (const std::string& name : net.ListArguments()) {
    if (!request.inputs.contains(name)) request.grad_req[name] = executor::GradReq::kWrite;
  }
  auto train = [&](int64_t budget, int64_t* arena) {
    BindRequest limited = request;
    limited.memory_budget.bytes = budget;
    const auto executor = Executor::SimpleBind(*runtime, net, limited);
    *arena = executor->arena_bytes();
    for (const auto* arrays : {&executor->args(), &executor->auxs()}) {
      for (const auto& [name, array] : *arrays)
        SetValues(NDArray(array), ValuesFor(name, array.shape().Size()));
    }
    const std::vector<NDArray> inputs = {NDArray(*runtime, TShape{2, 8, 12, 12}),
                                         NDArray(*runtime, TShape{2})};
    SetValues(inputs[0], ValuesFor("data", 2 * 8 * 144));
    SetValues(inputs[1], {1, 3});
    for (int step = 0; step < 3; ++step) executor->Step(inputs);
    std::vector<std::vector<double>> result;
    for (const auto* arrays : {&executor->grads(), &executor->auxs()}) {
      for (const auto& [name, array] : *arrays) result.push_back(GetValues(array));
    }
    result.push_back(GetValues(executor->outputs()[0]));
    return result;
  };
  int64_t plain = 0;
  const auto expected = train(0, &plain);
  for (const int64_t part : {1, 2, 3, 4}) {
    CAPTURE(part);
    int64_t arena = 0;
    const bool equal = train(plain / part, &arena) == expected;
    CHECK(equal);
    CHECK(arena <= plain / part);
  }
  int64_t arena = 0;
  CHECK_THROWS_WITH_AS(
      train(4096, &arena),
      doctest::Contains("a memory budget of 4 KiB cannot be met: the net needs at least"), Error);
}

// The array at a cut point aliases a result of an earlier part, or is larger than everything held
// after it.
std::vector<SmallNet> NetsOfViews() {
  const Symbol data = Symbol::Variable("data");
  auto scaled = [&](const Symbol& x, const std::string& name) {
    return Layer("_mul_scalar", name, {x}, {{"scalar", "0.5"}});
  };
  auto split = [&](const Symbol& x) {
    return Layer("Reshape", "split", {x}, {{"shape", "(0, -4, 2, 3, -2)"}});
  };
  auto dense = [&](const Symbol& x) {
    return Layer("FullyConnected", "fc", {x}, {{"num_hidden", "3"}, {"flatten", "False"}});
  };
  std::vector<SmallNet> nets;
  auto add = [&](const std::string& name, const Symbol& features) {
    nets.push_back({name,
                    Layer("MakeLoss", "loss", {features}),
                    features,
                    {{"data", TShape{4, 6, 5}}},
                    {},
                    0});
  };
  add("split", split(data));
  add("dense", dense(data));
  add("scaled", scaled(data, "half"));
  add("split, dense", dense(split(data)));
  add("split, dense, scaled", scaled(dense(split(data)), "half"));
  add("scaled, split, dense", dense(split(scaled(data, "half"))));
  add("scaled, split, scaled, dense", dense(scaled(split(scaled(data, "half")), "quarter")));
  add("tanh, scaled, split, dense", dense(split(scaled(Layer("tanh", "tanh", {data}), "half"))));
  return nets;
}

// Gradients of the inputs too, as many as there may be.
BindRequest AllGradients(const SmallNet& net, const Symbol& symbol) {
  BindRequest request = RequestFor(net, symbol);
  for (const auto& [name, shape] : net.data) request.grad_req[name] = executor::GradReq::kWrite;
  return request;
}

// The least budget in bytes that the error of an impossible one names.
int64_t LeastNamed(const ExecGraph& graph, BindRequest request) {
  request.memory_budget = {.bytes = 1};
  try {
    executor::Recompute(graph, request);
  } catch (const Error& e) {
    int64_t least = 0;
    const std::string text = e.what();
    REQUIRE(std::sscanf(text.substr(text.find("needs at least")).c_str(),
                        "needs at least %" SCNd64 " bytes", &least) == 1);
    return least;
  }
  return 1;
}

// The budget that the error names suffices, and one byte less does not.
void CheckLeast(const ExecGraph& graph, BindRequest request) {
  const int64_t least = LeastNamed(graph, request);
  request.memory_budget = {.bytes = least};
  CHECK(executor::PlanLifetimes(executor::Recompute(graph, request)).lower_bound <= least);
  if (least == 1) return;
  for (const int64_t workers : {1, 3}) {
    request.memory_budget = executor::MemoryBudget{.bytes = workers * least - 1}.Among(workers);
    CHECK_THROWS_WITH_AS(executor::Recompute(graph, request),
                         doctest::Contains(format("at least {} bytes", workers * least).c_str()),
                         Error);
  }
}

TEST_CASE("every budget suffices or is rejected with the least that does") {
  const auto runtime = NewRuntime("threaded", 1);
  std::vector<SmallNet> nets = NetsOfViews();
  for (SmallNet& net : SmallNets(TestRegistry())) nets.push_back(std::move(net));
  for (unsigned seed = 0; seed < NumRandomNets(60); ++seed)
    nets.push_back(RandomNet(TestRegistry(), seed, false));
  int met = 0, rejected = 0;
  for (const SmallNet& net : nets) {
    for (const Symbol& symbol : {net.losses, net.features}) {
      CAPTURE(net.name);
      BindRequest request = AllGradients(net, symbol);
      const ExecGraph graph = RunPasses(symbol.graph(), request, *runtime);
      if (graph.first_backward < 0) continue;
      const MemoryPlan plain = executor::PlanLifetimes(graph);
      const executor::RecomputeChoice choice(graph, plain);
      for (int64_t bytes = 0; bytes <= plain.lower_bound; bytes += 64) {
        CAPTURE(bytes);
        const std::vector<bool> again = choice.Within(bytes);
        if (!again.empty()) CHECK(again.size() == graph.nodes.size());
      }
      CheckLeast(graph, request);
      for (int percent = 1; percent <= 100; percent += 9) {
        CAPTURE(percent);
        request.memory_budget.share = percent / 100.0;
        try {
          const int64_t peak =
              executor::PlanLifetimes(executor::Recompute(graph, request)).lower_bound;
          ++met;
          CHECK(peak <= request.memory_budget.Of(plain.lower_bound));
        } catch (const Error& e) {
          CHECK_MESSAGE(std::string(e.what()).starts_with("a memory budget of "), e.what());
          ++rejected;
        }
      }
    }
  }
  CHECK(met > 50);
  CHECK(rejected > 50);
}

}  // namespace
}  // namespace mxtrain::test
