// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/executor/internal/order.h"

#include <doctest/doctest.h>

#include "tests/support/layers.h"
#include "tests/support/operator_case.h"
#include "tests/support/planned_run.h"
#include "tests/support/random_nets.h"
#include "tests/support/small_stack.h"

namespace mxtrain::test {
namespace {

using executor::BindRequest;
using executor::ExecGraph;
using executor::GradReq;

TEST_CASE("of two branches the one that needs more memory runs first, however they were written") {
  const auto runtime = NewRuntime("naive", 1);
  const Symbol data = Symbol::Variable("data");
  // One leaves a large array; the other needs a larger one temporarily and leaves a small one.
  const Symbol wide = Dense("wide", data, 1000);
  const Symbol thin = Dense("thin", Dense("huge", data, 5000), 10);
  for (const auto& branches : {std::vector<Symbol>{wide, thin}, std::vector<Symbol>{thin, wide}}) {
    const Symbol net = Layer("Concat", "both", branches, {{"num_args", "2"}, {"dim", "1"}});
    BindRequest request;
    request.is_train = false;
    request.inputs = {"data"};
    request.shapes = {{"data", TShape{16, 8}}};
    request.reference_kernels = true;
    const auto plan =
        PlanMemory(RunPasses(net.graph(), request, *runtime), request, executor::Strategy::kFull);
    CHECK(plan.arena_bytes == 16 * 4 * (5000 + 10));  // `huge`, and `thin` beside it
  }
}

// Of as many nodes as once were too many; with a recursion anywhere the stack overflows.
TEST_CASE("a long chain binds, runs forward and backward, and is destroyed" *
          doctest::test_suite("long")) {
  RuntimeOptions options;
  options.threads = 1;
  Runtime runtime(options, BuiltinOperators());
  for (const bool trains : {false, true}) {
    CAPTURE(trains);
    OnSmallStack([&runtime, trains] {
      const int length = trains ? 50'000 : 200'000;
      Symbol chain = Symbol::Variable("start");
      for (int i = 0; i < length; ++i)
        chain = Layer("_plus_scalar", format("plus{}", i), {chain}, {{"scalar", "1"}});
      BindRequest request;
      request.shapes = {{"start", TShape{1}}};
      request.reference_kernels = true;
      request.fuse = false;
      request.is_train = trains;
      if (trains) request.grad_req["start"] = GradReq::kWrite;
      const auto executor = Executor::SimpleBind(runtime, chain, request);
      SetValues(executor->args().at("start"), {2});
      executor->Forward({});
      CHECK(executor->outputs()[0].ToVector()[0] == length + 2);
      if (!trains) return;
      const NDArray head_gradient = NDArray::FromVector(runtime, {1}, {3});
      executor->Backward({&head_gradient, 1});
      CHECK(executor->grads().at("start").ToVector()[0] == 3);
    });
  }
}

TEST_CASE("another order gives the same bits and needs no more memory") {
  const auto runtime = NewRuntime("naive", 1);
  int lower = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    const SmallNet net = RandomNet(TestRegistry(), seed, false);
    CAPTURE(net.name);
    BindRequest request = RequestFor(net, seed % 2 ? net.losses : net.features);
    if (seed % 2 == 0) {
      request.is_train = false;
      request.grad_req.clear();
    }
    const Symbol& symbol = seed % 2 ? net.losses : net.features;
    ExecGraph graph = Infer(symbol.graph(), request);
    graph = ChooseLayouts(Fuse(std::move(graph), request, *runtime), request, *runtime);
    graph = FinalizePlans(AddGradient(std::move(graph), request, runtime->operators()), request,
                          *runtime);
    const ExecGraph ordered = executor::ChooseOrder(graph);
    const int64_t before = executor::PlanLifetimes(graph).lower_bound,
                  after = executor::PlanLifetimes(ordered).lower_bound;
    CHECK(after <= before);
    lower += after < before;
    auto run = [&](const ExecGraph& g) {
      const auto plan = PlanApart(g, request);
      PlannedRun planned(*runtime, g, plan, request.is_train,
                         [&net](const std::string& name, const TShape& shape) {
                           return ValuesFor(
                               name, shape.Size(),
                               net.labels.contains(name) && shape.ndim() == 1 ? net.classes : 0);
                         });
      return planned.Run(SerialOrder(planned.size()));
    };
    const bool equal = run(graph) == run(ordered);
    CHECK(equal);
  }
  // In some builds none; the nets above have orders that matter in all.
  MESSAGE("a lower peak in " << lower << " of 200 random nets");
}

}  // namespace
}  // namespace mxtrain::test
