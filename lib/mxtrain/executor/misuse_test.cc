// What an Executor refuses, and that it is as good as before afterwards.
#include <doctest/doctest.h>

#include "mxtrain/base/error.h"
#include "tests/support/operator_case.h"
#include "tests/support/small_nets.h"

namespace mxtrain::test {
namespace {

using executor::BindRequest;
using Arrays = std::map<std::string, NDArray>;

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
  const auto refused = [&] { CHECK_THROWS_WITH(executor->Backward(), doctest::Contains("has no Forward to follow")); };
  refused();
  executor->Step(inputs);
  const auto expected = Gradients(*executor);
  refused();
  executor->Forward(inputs);
  executor->Backward();
  CHECK(Gradients(*executor) == expected);
  refused();

  BindRequest evaluation = request;
  evaluation.is_train = false;
  evaluation.grad_req.clear();
  const auto other = Executor::SimpleBind(*runtime, net.losses, evaluation, executor.get());
  executor->Forward(inputs);
  other->Forward(inputs);
  refused();

  // A Forward that is refused changes nothing: the one before it still has its Backward.
  executor->Forward(inputs);
  const uint64_t step = executor->random_step();
  CHECK_THROWS(executor->Forward(std::vector<NDArray>{inputs[1], inputs[0]}));
  CHECK_THROWS(executor->Forward(std::vector<NDArray>{inputs[0], NDArray()}));
  CHECK(executor->random_step() == step);
  executor->Backward();
  CHECK(Gradients(*executor) == expected);
}

TEST_CASE("head gradients that do not fit are refused, and the right ones still taken") {
  const auto runtime = NewRuntime();
  const SmallNet net = SmallNets(TestRegistry())[0];
  const auto executor = BindWithValues(*runtime, net.features, RequestFor(net, net.features));
  executor->Forward(MakeInputs(*runtime, net, executor->input_names()));
  const NDArray head(*runtime, executor->outputs()[0].shape()), wrong(*runtime, {1});
  SetValues(head, ValuesFor("head", head.shape().Size()));
  CHECK_THROWS_WITH(executor->Backward(std::vector<NDArray>{wrong}), doctest::Contains("must be float32"));
  CHECK_THROWS_WITH(executor->Backward(std::vector<NDArray>{head, head}), doctest::Contains("2 head gradients were given, 1 are needed"));
  executor->Backward(std::vector<NDArray>{head});
  CHECK(Gradients(*executor).size() == 6);
}

TEST_CASE("arrays that are missing or of another shape are refused by name") {
  const auto runtime = NewRuntime();
  const SmallNet net = SmallNets(TestRegistry())[0];
  const BindRequest request = RequestFor(net, net.losses);
  const auto made = BindWithValues(*runtime, net.losses, request);
  const auto bind = [&](const Arrays& args, const Arrays& grads, const BindRequest& asked) {
    return Executor::Bind(*runtime, net.losses, asked, args, grads, made->auxs());
  };
  CHECK_NOTHROW(bind(made->args(), made->grads(), request));
  Arrays args = made->args(), grads = made->grads();
  args["fc1_weigth"] = args.at("fc1_weight");
  args.erase("fc1_weight");
  CHECK_THROWS_WITH_AS(bind(args, grads, request), "no argument 'fc1_weight' was given to Bind; did you mean 'fc1_weigth'?", Error);
  grads.erase("fc2_bias");
  CHECK_THROWS_WITH(bind(made->args(), grads, request), doctest::Contains("no gradient array of argument 'fc2_bias'"));

  BindRequest larger = request;
  larger.shapes["fc1_weight"] = TShape{10, 5};
  CHECK_THROWS_WITH(bind(made->args(), made->grads(), larger), doctest::Contains("array 'fc1_weight' is float32 [9, 5]"));
  CHECK_THROWS_WITH(Executor::SimpleBind(*runtime, net.losses, larger, made.get()), doctest::Contains("[10, 5] was asked for"));
  CHECK_THROWS_WITH(made->Reshape({{"dta", TShape{3, 5}}}), "the net has no input 'dta'; did you mean 'data'?");
  CHECK_THROWS_WITH(made->Reshape({{"fc1_weight", TShape{3, 5}}}), doctest::Contains("no input 'fc1_weight'"));
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

// The array that carries a failure into the run is mended; nobody waits for the gradients, the statistics or the arena.
TEST_CASE("after a run that failed and whose error was seen, the next one gives what it would have given") {
  for (const char* engine : {"naive", "threaded"}) {
    CAPTURE(engine);
    const auto runtime = NewRuntime(engine);
    for (const SmallNet& net : SmallNets(TestRegistry())) {
      CAPTURE(net.name);
      const auto executor = BindWithValues(*runtime, net.losses, RequestFor(net, net.losses));
      const auto inputs = MakeInputs(*runtime, net, executor->input_names());
      const auto expected = BindWithValues(*runtime, net.losses, RequestFor(net, net.losses));
      const engine::VarHandle broken[] = {inputs[0].var()};
      runtime->engine().PushSync([](RunContext) { Throw(ErrorKind::kData, "no such picture"); }, {}, broken, {.name = "read"});
      executor->Step(inputs);
      executor->Step(inputs);
      CHECK_THROWS_WITH(executor->outputs()[0].WaitToRead(), "read: no such picture");
      CHECK_THROWS_WITH(inputs[0].WaitToRead(), "read: no such picture");
      executor->Step(inputs);
      expected->Step(inputs);
      for (size_t i = 0; i < expected->outputs().size(); ++i) CHECK(GetValues(executor->outputs()[i]) == GetValues(expected->outputs()[i]));
      CHECK(Gradients(*executor) == Gradients(*expected));
    }
  }
}

}  // namespace
}  // namespace mxtrain::test
