// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "mxtrain/executor/executor.h"
#include "mxtrain/operator/composite.h"
#include "mxtrain/operator/imperative.h"
#include "mxtrain/operator/plans.h"
#include "tests/support/small_nets.h"

namespace mxtrain::executor {
namespace {

using test::GetValues;
using test::SetValues;

// test_distance(a, b) = the sum of (a - b)^2, of which test_square_gap(a, b) = (a - b)^2 is a part.
std::shared_ptr<OperatorRegistry> Operators() {
  auto registry = BuiltinOperators();
  AddComposite<NoParam>(*registry,
                        {.name = "test_square_gap",
                         .description = "(a - b)^2",
                         .arguments = {"a", "b"},
                         .lower = [](const NoParam&, Lowering& g) {
                           const auto gap = g("elemwise_sub", {g.argument(0), g.argument(1)});
                           g.SetOutput(0, g("square", {gap}));
                         }});
  AddComposite<NoParam>(*registry,
                        {.name = "test_distance",
                         .description = "the sum of (a - b)^2, and a",
                         .arguments = {"a", "b"},
                         .outputs = {"output", "first"},
                         .lower = [](const NoParam&, Lowering& g) {
                           const auto gap = g("test_square_gap", {g.argument(0), g.argument(1)});
                           g.SetOutput(0, g("sum", {gap}));
                           g.SetOutput(1, g.argument(0));
                         }});
  return registry;
}

// A kernel for float32 only that gives (a - b)^2 + 100.
class Shifted final : public Operator {
 public:
  void Forward(const ForwardArgs& args) override {
    for (int64_t i = 0; i < args.out_data[0].Size(); ++i) {
      const float gap = args.in_data[0].dptr<float>()[i] - args.in_data[1].dptr<float>()[i];
      args.out_data[0].dptr<float>()[i] = gap * gap + 100;
    }
  }
};

std::vector<std::string> NamesOf(const ExecGraph& graph) {
  std::vector<std::string> names;
  for (const ExecNode& node : graph.nodes) {
    if (!node.is_variable() && !node.backward_pass)
      names.push_back(node.name + ":" + node.op->TypeString());
  }
  return names;
}

RuntimeOptions TwoThreads() {
  RuntimeOptions options;
  options.threads = 2;
  return options;
}

struct Bound {
  std::unique_ptr<Runtime> runtime;
  std::unique_ptr<Executor> executor;
};
Bound Bind(std::shared_ptr<OperatorRegistry> registry, const std::string& op, DType type,
           bool gradients, bool fuse = false) {
  Bound bound;
  bound.runtime = std::make_unique<Runtime>(TwoThreads(), registry);
  const Symbol net = Symbol::Create(*registry, op, "net", {},
                                    std::vector{Symbol::Variable("a"), Symbol::Variable("b")}, {},
                                    {}, "net.yaml:3");
  BindRequest request;
  request.fuse = fuse;
  request.shapes = {{"a", {3}}, {"b", {3}}};
  request.types = {{"a", type}, {"b", type}};
  if (gradients) request.grad_req = {{"a", GradReq::kWrite}, {"b", GradReq::kWrite}};
  bound.executor = Executor::SimpleBind(*bound.runtime, net, request);
  SetValues(bound.executor->arg("a"), {1, 2, 5});
  SetValues(bound.executor->arg("b"), {3, 2, 1});
  bound.executor->Forward({});
  return bound;
}

TEST_CASE("a composite becomes its graph, and so do composites in it") {
  const Bound bound = Bind(Operators(), "test_distance", DType::kFloat32, true);
  CHECK(NamesOf(bound.executor->graph()) ==
        std::vector<std::string>{"net_elemwise_sub1:elemwise_sub", "net_test_square_gap0:square",
                                 "net:sum", "net__copy2:_copy"});
  for (const ExecNode& node : bound.executor->graph().nodes) {
    if (node.kind != Node::Kind::kForward || node.backward_pass) continue;
    CHECK(node.origins == std::vector<std::string>{"net"});
    CHECK(node.where == "net.yaml:3");
  }
  CHECK(GetValues(bound.executor->outputs()[0]) == std::vector<double>{20});
  CHECK(GetValues(bound.executor->outputs()[1]) == std::vector<double>{1, 2, 5});
  const NDArray head = NDArray::FromVector(*bound.runtime, {1}, {1}),
                first = NDArray::FromVector(*bound.runtime, {3}, {10, 20, 30});
  bound.executor->Backward(std::vector{head, first});
  CHECK(GetValues(bound.executor->grad("a")) == std::vector<double>{6, 20, 38});
  CHECK(GetValues(bound.executor->grad("b")) == std::vector<double>{4, 0, -8});
}

TEST_CASE("a kernel that takes the composite is preferred") {
  const auto registry = Operators();
  registry->AddKernel({"test_square_gap", DeviceType::kCPU, "shifted", 100,
                       [](const OperatorProperty& property, const PlanRequest& request,
                          Backend&) -> Expected<Plan, Refusal> {
                         if (request.needs_backward || request.in[0].type != DType::kFloat32)
                           return Refusal{"float32 without gradients only"};
                         Plan plan = PlainPlan(property, request);
                         plan.make = [] { return std::make_unique<Shifted>(); };
                         return plan;
                       }});
  const auto result = [&](DType type, bool gradients) {
    return GetValues(Bind(registry, "test_square_gap", type, gradients).executor->outputs()[0]);
  };
  CHECK(result(DType::kFloat32, false) == std::vector<double>{104, 100, 116});
  CHECK(result(DType::kFloat64, false) == std::vector<double>{4, 0, 16});
  CHECK(result(DType::kFloat32, true) == std::vector<double>{4, 0, 16});
}

TEST_CASE("the parts of a composite are fused like others") {
  const Bound bound = Bind(Operators(), "test_square_gap", DType::kFloat32, false, /*fuse=*/true);
  CHECK(NamesOf(bound.executor->graph()) == std::vector<std::string>{"net:_ElementwiseChain"});
  CHECK(GetValues(bound.executor->outputs()[0]) == std::vector<double>{4, 0, 16});
}

TEST_CASE("an imperative call runs a composite's graph") {
  const auto registry = Operators();
  Runtime runtime(TwoThreads(), registry);
  const NDArray a = NDArray::FromVector(runtime, {3}, {1, 2, 5}),
                b = NDArray::FromVector(runtime, {3}, {3, 2, 1});
  CHECK(GetValues(Invoke("test_distance", std::vector{a, b})[0]) == std::vector<double>{20});
  const NDArray out = NDArray::FromVector(runtime, {3}, {1, 1, 1});
  InvokeInto("test_square_gap", std::vector{a, b}, {&out, 1}, OpReqType::kAddTo);
  CHECK(GetValues(out) == std::vector<double>{5, 1, 17});
  // The output may be an argument.
  InvokeInto("test_square_gap", std::vector{a, b}, {&a, 1});
  CHECK(GetValues(a) == std::vector<double>{4, 0, 16});
  const PreparedCall call("test_square_gap", std::vector{a, b}, {&out, 1}, OpReqType::kWriteTo, {},
                          {});
  call.Push(0);
  CHECK(GetValues(out) == std::vector<double>{1, 4, 225});
  CHECK_THROWS_WITH(Invoke("test_square_gap", {&a, 1}),
                    doctest::Contains("test_square_gap takes 2 arguments (a, b), but got 1"));
  const NDArray other = NDArray::FromVector(runtime, {2}, {1, 1});
  CHECK_THROWS_WITH(Invoke("test_square_gap", std::vector{a, other}),
                    doctest::Contains("test_square_gap"));
}

TEST_CASE("an imperative composite is checked as other operators are") {
  const auto registry = Operators();
  Runtime runtime(TwoThreads(), registry);
  const NDArray a = NDArray::FromVector(runtime, {1, 2, 2}, {3, 0, 4, 0}),
                b = NDArray::FromVector(runtime, {1, 2, 2}, {0, 0, 0, 0});
  CHECK_THROWS_WITH(InvokeInto("L2Normalization", {&a, 1}, std::vector{b, b}),
                    doctest::Contains("L2Normalization takes 1 output"));
  const NDArray gamma = NDArray::FromVector(runtime, {1}, {1});
  CHECK_THROWS_WITH(Invoke("InstanceNorm", std::vector{a, gamma, gamma}),
                    doctest::Contains("gamma"));
  const NDArray two = NDArray::FromVector(runtime, {1}, {2});
  CHECK(Invoke("GroupNorm", std::vector{a, two, two}).size() == 1);  // no hidden outputs
  // A result that is the argument is an array of its own.
  const std::vector<NDArray> out = Invoke("test_distance", std::vector{a, b});
  NDArray(out[1]).CopyFrom(b);
  CHECK(GetValues(a) == std::vector<double>{3, 0, 4, 0});
  // It is read before another output overwrites it.
  const NDArray x = NDArray::FromVector(runtime, {1}, {5}),
                y = NDArray::FromVector(runtime, {1}, {3});
  const NDArray first = NDArray::FromVector(runtime, {1}, {0});
  InvokeInto("test_distance", std::vector{x, y}, std::vector{x, first});
  CHECK(GetValues(x) == std::vector<double>{4});
  CHECK(GetValues(first) == std::vector<double>{5});
  CHECK_THROWS_WITH(InvokeInto("test_distance", std::vector{x, y}, std::vector{first, first}),
                    doctest::Contains("test_distance: two outputs share memory"));
  InvokeInto("test_distance", std::vector{x, y}, std::vector{x, first}, OpReqType::kNullOp);
  CHECK(GetValues(x) == std::vector<double>{4});
}

TEST_CASE("no gradient passes a label of a composite") {
  auto registry = BuiltinOperators();
  AddComposite<NoParam>(*registry,
                        {.name = "test_labelled",
                         .description = "(a - b)^2 of the label b",
                         .arguments = {"a", "b"},
                         .labels = {"b"},
                         .lower = [](const NoParam&, Lowering& g) {
                           const auto gap = g("elemwise_sub", {g.argument(0), g.argument(1)});
                           g.SetOutput(0, g("square", {gap}));
                         }});
  const auto property = registry->Create("test_labelled", {});
  CHECK(property->HasGradient(0));
  CHECK_FALSE(property->HasGradient(1));
  // The label is computed from an argument that has a gradient.
  Runtime runtime(TwoThreads(), registry);
  const Symbol b = Symbol::Variable("b"),
               twice = Symbol::Create(*registry, "_mul_scalar", "twice", {{"scalar", "2"}},
                                      std::vector{b}),
               loss = Symbol::Create(*registry, "test_labelled", "loss", {}, std::vector{b, twice});
  BindRequest request;
  request.shapes = {{"b", {2}}};
  request.grad_req = {{"b", GradReq::kWrite}};
  const auto executor = Executor::SimpleBind(runtime, loss, request);
  SetValues(executor->arg("b"), {3, -1});
  executor->Forward({});
  CHECK(GetValues(executor->outputs()[0]) == std::vector<double>{9, 1});
  const NDArray head = NDArray::FromVector(runtime, {2}, {1, 1});
  executor->Backward({&head, 1});
  CHECK(GetValues(executor->grad("b")) == std::vector<double>{-6, 2});  // 2 (b - 2 b), not 2 b
}

// The result of the inner composite is that of the outer one; each has a step of one operator.
TEST_CASE("the nodes of nested composites have names of their own") {
  const auto registry = Operators();
  const auto lower = [](const char* inner) {
    return [inner](const NoParam&, Lowering& g) {
      g.SetOutput(0, g(inner, {g("Dropout", {g.argument(0)})}));
    };
  };
  AddComposite<NoParam>(*registry,
                        {.name = "test_once", .description = "", .lower = lower("square")});
  AddComposite<NoParam>(*registry,
                        {.name = "test_twice", .description = "", .lower = lower("test_once")});
  Runtime runtime(TwoThreads(), registry);
  const Symbol net =
      Symbol::Create(*registry, "test_twice", "net", {}, std::vector{Symbol::Variable("a")});
  BindRequest request;
  request.shapes = {{"a", {4000}}};
  const auto executor = Executor::SimpleBind(runtime, net, request);
  std::vector<std::string> names = NamesOf(executor->graph());
  std::sort(names.begin(), names.end());
  CHECK(std::unique(names.begin(), names.end()) == names.end());
  SetValues(executor->arg("a"), std::vector<double>(4000, 1));
  executor->Forward({});
  const std::vector<double> y = GetValues(executor->outputs()[0]);
  // Two draws of one half.
  CHECK(std::abs(4000 - std::count(y.begin(), y.end(), 0.0) - 1000) < 150);
}

TEST_CASE("a part that no kernel takes is lowered too") {
  const auto registry = Operators();
  registry->AddKernel({"test_square_gap", DeviceType::kCPU, "never", 100,
                       [](const OperatorProperty&, const PlanRequest&,
                          Backend&) -> Expected<Plan, Refusal> { return Refusal{"never"}; }});
  CHECK(GetValues(Bind(registry, "test_distance", DType::kFloat32, true).executor->outputs()[0]) ==
        std::vector<double>{20});
  Runtime runtime(TwoThreads(), registry);
  const NDArray a = NDArray::FromVector(runtime, {2}, {1, 2});
  CHECK(GetValues(Invoke("test_square_gap", std::vector{a, a})[0]) == std::vector<double>{0, 0});
}

TEST_CASE("a composite whose registry is gone says so") {
  auto registry = Operators();
  const auto norm = registry->Create("InstanceNorm", {});
  registry.reset();
  std::vector<TShape> in = {TShape{2, 3, 4}, TShape{3}, TShape{3}}, out(1), aux;
  CHECK_THROWS_WITH(norm->InferShape(&in, &out, &aux), doctest::Contains("registry"));
}

}  // namespace
}  // namespace mxtrain::executor
