// Recomputation: any nodes may run again and nothing changes but the memory.
#include "mxtrain/executor/passes/recompute.h"

#include <doctest/doctest.h>

#include <random>

#include "mxtrain/base/error.h"
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

PlannedRun::ValuesOf ValuesFrom(const SmallNet& net) {
  return [&net](const std::string& name, const TShape& shape) {
    return ValuesFor(name, shape.Size(), net.labels.contains(name) && shape.ndim() == 1 ? net.classes : 0);
  };
}

int CountCopies(const ExecGraph& graph) {
  int copies = 0;
  for (const auto& node : graph.nodes) copies += node.forward >= 0 && node.kind != Node::Kind::kBackward;
  return copies;
}

TEST_CASE("whatever runs again, outputs, gradients and auxiliary states are the same bit for bit") {
  const auto runtime = NewRuntime("threaded", 1);
  std::mt19937 random(11);
  int copies = 0;
  auto check = [&](const SmallNet& net) {
    CAPTURE(net.name);
    BindRequest request = RequestFor(net, net.losses);
    request.fuse = random() % 3 != 0;
    if (request.grad_req.empty()) return;
    const ExecGraph graph = RunPasses(net.losses.graph(), request, *runtime);
    const MemoryPlan apart = PlanApart(graph, request);
    PlannedRun plain(*runtime, graph, apart, true, ValuesFrom(net));
    const auto expected = plain.Run(SerialOrder(plain.size()));
    for (const unsigned share : {1u, 2u, 4u}) {  // all of them, half, a quarter
      std::vector<bool> again = executor::Repeatable(graph);
      for (size_t id = 0; id < again.size(); ++id) again[id] = again[id] && random() % share == 0;
      const ExecGraph twice = executor::RunAgain(graph, again);
      copies += CountCopies(twice);
      const MemoryPlan plan = PlanMemory(twice, request, Strategy::kFull);
      for (const std::string& fault : PlanReader(twice, plan).Faults()) FAIL_CHECK(fault);
      PlannedRun run(*runtime, twice, plan, true, ValuesFrom(net));
      const bool equal = run.Run(SerialOrder(run.size())) == expected;
      CHECK(equal);
    }
  };
  for (const SmallNet& net : SmallNets(TestRegistry())) check(net);
  for (unsigned seed = 0; seed < 60; ++seed) check(RandomNet(TestRegistry(), seed, false));
  CHECK(copies > 300);
}

Symbol Layer(const char* op, const std::string& name, const Kwargs& kwargs, const std::vector<Symbol>& inputs) {
  return Symbol::Create(TestRegistry(), op, name, kwargs, inputs);
}

// Convolutions, batch norms, dropouts and, every other layer, a way around; `layers` deep.
Symbol DeepNet(int layers) {
  Symbol x = Symbol::Variable("data");
  for (int k = 0; k < layers; ++k) {
    const std::string name = "layer" + std::to_string(k);
    Symbol y = Layer("BatchNorm", name + "_bn", {{"fix_gamma", "False"}}, {x});
    y = Layer("Activation", name + "_relu", {{"act_type", "relu"}}, {y});
    y = Layer("Convolution", name + "_conv", {{"num_filter", "8"}, {"kernel", "(3, 3)"}, {"pad", "(1, 1)"}}, {y});
    if (k % 3 == 2) y = Layer("Dropout", name + "_drop", {{"p", "0.3"}}, {y});
    x = k % 2 && k > 0 ? Layer("elemwise_add", name + "_sum", {}, {x, y}) : y;
  }
  x = Layer("Flatten", "flat", {}, {x});
  x = Layer("FullyConnected", "fc", {{"num_hidden", "4"}}, {x});
  return Layer("SoftmaxOutput", "softmax", {}, {x});
}

TEST_CASE("a deep net trains within a quarter of its plain plan, to the same bits; less than possible is refused with what is") {
  const auto runtime = NewRuntime("threaded", 1);
  const Symbol net = DeepNet(60);
  BindRequest request;
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
      for (const auto& [name, array] : *arrays) SetValues(NDArray(array), ValuesFor(name, array.shape().Size()));
    }
    const std::vector<NDArray> inputs = {NDArray(*runtime, TShape{2, 8, 12, 12}), NDArray(*runtime, TShape{2})};
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
  CHECK_THROWS_WITH_AS(train(4096, &arena), doctest::Contains("a memory budget of 4 KiB cannot be met: with recomputation the net needs"),
                       Error);
}

}  // namespace
}  // namespace mxtrain::test
