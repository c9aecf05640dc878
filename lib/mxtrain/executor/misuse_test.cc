// SPDX-License-Identifier: Apache-2.0
// Misuse that an Executor rejects, and that it stays usable.
#include <doctest/doctest.h>

#include <algorithm>

#include "mxtrain/base/error.h"
#include "tests/support/counted_square.h"
#include "tests/support/operator_case.h"
#include "tests/support/small_nets.h"

namespace mxtrain::test {
namespace {

using executor::BindRequest;
using ArraysByName = std::map<std::string, NDArray>;

std::map<std::string, std::vector<double>> Gradients(const Executor& executor) {
  std::map<std::string, std::vector<double>> result;
  for (const auto& [name, array] : executor.grads()) result[name] = GetValues(array);
  return result;
}

TEST_CASE("Backward follows a Forward, once") {
  const auto runtime = NewRuntime();
  const SmallNet net = SmallNets(TestRegistry())[0];
  const BindRequest request = RequestFor(net, net.losses);
  const auto executor = BindWithValues(*runtime, net.losses, request);
  const auto inputs = MakeInputs(*runtime, net, executor->input_names());
  const auto rejected = [&] {
    CHECK_THROWS_WITH(executor->Backward(), doctest::Contains("Backward without a Forward"));
  };
  rejected();
  executor->Step(inputs);
  const auto expected = Gradients(*executor);
  rejected();
  executor->Forward(inputs);
  executor->Backward();
  CHECK(Gradients(*executor) == expected);
  rejected();

  BindRequest evaluation = request;
  evaluation.is_train = false;
  evaluation.grad_req.clear();
  const auto other = Executor::SimpleBind(*runtime, net.losses, evaluation, executor.get());
  executor->Forward(inputs);
  other->Forward(inputs);
  rejected();

  // A rejected Forward changes nothing: the previous one can still have its Backward.
  executor->Forward(inputs);
  const uint64_t step = executor->random_step();
  CHECK_THROWS(executor->Forward(std::vector<NDArray>{inputs[1], inputs[0]}));
  CHECK_THROWS(executor->Forward(std::vector<NDArray>{inputs[0], NDArray()}));
  CHECK(executor->random_step() == step);
  executor->Backward();
  CHECK(Gradients(*executor) == expected);
}

TEST_CASE("head gradients that do not fit are rejected, and correct ones still accepted") {
  const auto runtime = NewRuntime();
  const SmallNet net = SmallNets(TestRegistry())[0];
  const auto executor = BindWithValues(*runtime, net.features, RequestFor(net, net.features));
  executor->Forward(MakeInputs(*runtime, net, executor->input_names()));
  const NDArray head(*runtime, executor->outputs()[0].shape()), wrong(*runtime, {1});
  SetValues(head, ValuesFor("head", head.shape().Size()));
  CHECK_THROWS_WITH(executor->Backward(std::vector<NDArray>{wrong}),
                    doctest::Contains("must be float32"));
  CHECK_THROWS_WITH(executor->Backward(std::vector<NDArray>{head, head}),
                    doctest::Contains("2 head gradients were given, 1 are needed"));
  executor->Backward(std::vector<NDArray>{head});
  CHECK(Gradients(*executor).size() == 6);
}

TEST_CASE("arrays that are missing or of another shape are rejected by name") {
  const auto runtime = NewRuntime();
  const SmallNet net = SmallNets(TestRegistry())[0];
  const BindRequest request = RequestFor(net, net.losses);
  const auto made = BindWithValues(*runtime, net.losses, request);
  const auto bind = [&](const ArraysByName& args, const ArraysByName& grads,
                        const BindRequest& asked) {
    return Executor::Bind(*runtime, net.losses, asked, args, grads, made->auxs());
  };
  CHECK_NOTHROW(bind(made->args(), made->grads(), request));
  ArraysByName args = made->args(), grads = made->grads();
  args["fc1_weigth"] = args.at("fc1_weight");
  args.erase("fc1_weight");
  CHECK_THROWS_WITH_AS(bind(args, grads, request),
                       "no argument 'fc1_weight' was given to Bind; did you mean 'fc1_weigth'?",
                       Error);
  grads.erase("fc2_bias");
  CHECK_THROWS_WITH(bind(made->args(), grads, request),
                    doctest::Contains("no gradient array of argument 'fc2_bias'"));

  BindRequest larger = request;
  larger.shapes["fc1_weight"] = TShape{10, 5};
  CHECK_THROWS_WITH(bind(made->args(), made->grads(), larger),
                    doctest::Contains("array 'fc1_weight' is float32 [9, 5]"));
  CHECK_THROWS_WITH(Executor::SimpleBind(*runtime, net.losses, larger, made.get()),
                    doctest::Contains("[10, 5] was requested"));
  CHECK_THROWS_WITH(made->Reshape({{"dta", TShape{3, 5}}}),
                    "the net has no input 'dta'; did you mean 'data'?");
  CHECK_THROWS_WITH(made->Reshape({{"fc1_weight", TShape{3, 5}}}),
                    doctest::Contains("no input 'fc1_weight'"));
}

TEST_CASE("an array of another type is rejected by name") {
  const auto runtime = NewRuntime();
  const SmallNet net = SmallNets(TestRegistry())[0];
  const BindRequest request = RequestFor(net, net.losses);
  const auto made = BindWithValues(*runtime, net.losses, request);
  for (const DType type : {DType::kInt32, DType::kFloat16, DType::kFloat64}) {
    CAPTURE(NameOf(type));
    ArraysByName args = made->args(), grads = made->grads();
    args["fc1_weight"] = NDArray(*runtime, args.at("fc1_weight").shape(), type);
    CHECK_THROWS_WITH_AS(Executor::Bind(*runtime, net.losses, request, args, grads, made->auxs()),
                         doctest::Contains("fc1"), Error);
    grads["fc1_weight"] = NDArray(*runtime, grads.at("fc1_weight").shape(), type);
    CHECK_THROWS_WITH_AS(
        Executor::Bind(*runtime, net.losses, request, made->args(), grads, made->auxs()),
        doctest::Contains(format("array 'fc1_weight' is {}", NameOf(type)).c_str()), Error);
  }
}

TEST_CASE("a monitor counts forward passes, and sees the Backward of those that it saw") {
  const auto runtime = NewRuntime();
  const SmallNet net = SmallNets(TestRegistry())[0];
  const auto executor = BindWithValues(*runtime, net.losses, RequestFor(net, net.losses));
  const auto inputs = MakeInputs(*runtime, net, executor->input_names());
  int forward = 0, backward = 0;
  executor->SetMonitor(
      [&](const std::string& name, const TBlob&) {
        forward += name == "softmax_output";
        backward += name == "fc1_backward_weight";
      },
      2);
  for (int i = 0; i < 4; ++i) {
    executor->Forward(inputs);
    executor->Backward();
    runtime->engine().WaitForAll();
    CHECK(forward == i / 2 + 1);
    CHECK(backward == i / 2 + 1);
  }
}

void Break(const NDArray& array) {
  const engine::VarHandle broken[] = {array.var()};
  array.runtime().engine().PushSync([](RunContext) { Throw(ErrorKind::kData, "no such image"); },
                                    {}, broken, {.name = "read"});
}
constexpr const char* kBroken = "read: no such image";

// Accumulated arrays hold what the failed run left: the error is thrown there, and ends where it
// was thrown.
void WaitForStates(const Executor& executor) {
  for (const auto& [name, array] : executor.auxs()) CHECK_THROWS_WITH(array.WaitToRead(), kBroken);
}

// The array that carried the failure into the run is repaired; nobody waits for the gradients or
// the arena.
TEST_CASE("after a run that failed and whose error was seen, the next one gives the right result") {
  for (const char* engine : {"naive", "threaded"}) {
    CAPTURE(engine);
    const auto runtime = NewRuntime(engine);
    for (const SmallNet& net : SmallNets(TestRegistry())) {
      CAPTURE(net.name);
      const auto executor = BindWithValues(*runtime, net.losses, RequestFor(net, net.losses));
      const auto inputs = MakeInputs(*runtime, net, executor->input_names());
      const auto expected = BindWithValues(*runtime, net.losses, RequestFor(net, net.losses));
      Break(inputs[0]);
      executor->Step(inputs);
      executor->Step(inputs);
      CHECK_THROWS_WITH(executor->outputs()[0].WaitToRead(), kBroken);
      CHECK_THROWS_WITH(inputs[0].WaitToRead(), kBroken);
      WaitForStates(*executor);
      executor->Step(inputs);
      expected->Step(inputs);
      for (size_t i = 0; i < expected->outputs().size(); ++i)
        CHECK(GetValues(executor->outputs()[i]) == GetValues(expected->outputs()[i]));
      CHECK(Gradients(*executor) == Gradients(*expected));
    }
  }
}

TEST_CASE("a sum of gradients that lacks a batch is not read as complete") {
  for (const char* engine : {"naive", "threaded"}) {
    CAPTURE(engine);
    const auto runtime = NewRuntime(engine);
    for (const SmallNet& net : SmallNets(TestRegistry())) {
      CAPTURE(net.name);
      BindRequest request = RequestFor(net, net.losses);
      for (auto& [name, req] : request.grad_req) req = executor::GradReq::kAdd;
      const auto executor = BindWithValues(*runtime, net.losses, request),
                 expected = BindWithValues(*runtime, net.losses, request);
      const auto inputs = MakeInputs(*runtime, net, executor->input_names());
      executor->Step(inputs);
      Break(inputs[0]);
      executor->Step(inputs);
      CHECK_THROWS_WITH(executor->outputs()[0].WaitToRead(), kBroken);
      CHECK_THROWS_WITH(inputs[0].WaitToRead(), kBroken);
      WaitForStates(*executor);
      executor->Step(inputs);
      for (const auto& [name, grad] : executor->grads()) {
        CAPTURE(name);
        if (name.starts_with("right") || name.starts_with("left"))
          continue;  // behind another input
        CHECK_THROWS_WITH(grad.WaitToRead(), kBroken);
      }
      // Overwritten, it is valid again.
      for (const auto* bound : {&executor, &expected}) {
        for (const auto& [name, grad] : (*bound)->grads()) NDArray(grad).Fill(0);
        SetParameters(**bound);
        (*bound)->Step(inputs);
      }
      CHECK(Gradients(*executor) == Gradients(*expected));
    }
  }
}

TEST_CASE("statistics that lack a batch are not read as complete") {
  const auto runtime = NewRuntime();
  const SmallNet net = SmallNets(TestRegistry())[1];  // with batch norm
  const auto executor = BindWithValues(*runtime, net.losses, RequestFor(net, net.losses));
  const auto inputs = MakeInputs(*runtime, net, executor->input_names());
  Break(inputs[0]);
  executor->Step(inputs);
  CHECK_THROWS_WITH(executor->outputs()[0].WaitToRead(), kBroken);
  CHECK_THROWS_WITH(inputs[0].WaitToRead(), kBroken);
  executor->Step(inputs);
  REQUIRE_FALSE(executor->auxs().empty());
  for (const auto& [name, array] : executor->auxs()) CHECK_THROWS_WITH(array.WaitToRead(), kBroken);
}

std::unique_ptr<Runtime> RuntimeWith(std::shared_ptr<const OperatorRegistry> operators,
                                     const std::string& engine) {
  RuntimeOptions options;
  options.engine = engine;
  options.threads = 2;
  return std::make_unique<Runtime>(options, std::move(operators));
}

TEST_CASE("a state that Forward changes lacks a pass that failed, and is not read as complete") {
  auto registry = BuiltinOperators();
  AddCountedSquare(registry.get());
  for (const char* engine : {"naive", "threaded"}) {
    CAPTURE(engine);
    const auto runtime = RuntimeWith(registry, engine);
    const SmallNet net = SquareNet(*registry);
    const auto executor = BindWithValues(*runtime, net.losses, RequestFor(net, net.losses));
    const auto inputs = MakeInputs(*runtime, net, executor->input_names());
    const auto counts = [&] {
      std::vector<double> all;
      for (const auto& [name, array] : executor->auxs()) all.push_back(GetValues(array)[0]);
      return all;
    };
    for (const auto& [name, array] : executor->auxs()) NDArray(array).Fill(0);
    executor->Forward(inputs);
    CHECK(counts() == std::vector<double>{1, 1});
    Break(inputs[0]);
    executor->Forward(inputs);
    CHECK_THROWS_WITH(executor->outputs()[0].WaitToRead(), kBroken);
    CHECK_THROWS_WITH(inputs[0].WaitToRead(), kBroken);
    WaitForStates(*executor);
    executor->Forward(inputs);
    CHECK(counts() == std::vector<double>{2, 2});
  }
}

// In evaluation batch norm is folded into weights that are computed once. A parameter that carries
// an error stops that, too.
TEST_CASE("what follows from a parameter is computed once the parameter can be read again") {
  for (const char* engine : {"naive", "threaded"}) {
    CAPTURE(engine);
    const auto runtime = NewRuntime(engine);
    const SmallNet net = SmallNets(TestRegistry())[1];
    BindRequest request = RequestFor(net, net.losses);
    request.is_train = false;
    request.grad_req.clear();
    const auto executor = BindWithValues(*runtime, net.losses, request);
    const auto& nodes = executor->graph().nodes;
    REQUIRE(
        std::any_of(nodes.begin(), nodes.end(), [](const auto& node) { return node.precomputed; }));
    const auto inputs = MakeInputs(*runtime, net, executor->input_names());
    executor->Forward(inputs);
    const auto expected = GetValues(executor->outputs()[0]);
    for (const auto& [name, array] : executor->args()) {
      CAPTURE(name);
      Break(array);
      executor->Forward(inputs);
      executor->Forward(inputs);
      CHECK_THROWS_WITH(executor->outputs()[0].WaitToRead(), kBroken);
      CHECK_THROWS_WITH(array.WaitToRead(), kBroken);
      executor->Forward(inputs);
      CHECK(GetValues(executor->outputs()[0]) == expected);
    }
  }
}

// Another operator that fails on request, before it writes anything.
class Breakable final : public Operator {
 public:
  Breakable(std::unique_ptr<Operator> op, const bool& broken)
      : op_(std::move(op)), broken_(broken) {}
  void Forward(const ForwardArgs& args) override {
    if (broken_) Throw(ErrorKind::kData, "no such image");
    op_->Forward(args);
  }

 private:
  const std::unique_ptr<Operator> op_;
  const bool& broken_;
};

TEST_CASE("a computation on parameters that failed is repeated though they are unchanged") {
  const auto builtin = BuiltinOperators();
  for (const char* engine : {"naive", "threaded"}) {
    CAPTURE(engine);
    bool broken = true;
    auto registry = BuiltinOperators();
    registry->AddKernel({"_FoldBatchNorm", DeviceType::kCPU, "breakable", 1,
                         [&](const OperatorProperty& property, const PlanRequest& request,
                             Backend& backend) -> Expected<Plan, Refusal> {
                           Plan plan = property.CreatePlan(*builtin, request, backend);
                           plan.make = [&broken, make = plan.make] {
                             return std::make_unique<Breakable>(make(), broken);
                           };
                           return plan;
                         }});
    const auto runtime = RuntimeWith(registry, engine);
    const SmallNet net = SmallNets(*registry)[1];
    BindRequest request = RequestFor(net, net.features);
    request.is_train = false;
    request.grad_req.clear();
    const auto executor = BindWithValues(*runtime, net.features, request);
    const auto inputs = MakeInputs(*runtime, net, executor->input_names());
    executor->Forward(inputs);
    CHECK_THROWS_WITH_AS(executor->outputs()[0].WaitToRead(), doctest::Contains("no such image"),
                         Error);
    CHECK_THROWS_AS(runtime->engine().WaitForAll(), Error);  // the other batch norm
    broken = false;
    executor->Forward(inputs);
    const auto values = GetValues(executor->outputs()[0]);
    const auto expected = BindWithValues(*runtime, net.features, request);
    expected->Forward(inputs);
    CHECK(values == GetValues(expected->outputs()[0]));
  }
}

}  // namespace
}  // namespace mxtrain::test
