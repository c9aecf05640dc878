// SPDX-License-Identifier: Apache-2.0
// Fused graphs against the unfused ones: losses, all gradients and moving averages on random nets.
#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <set>

#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operator/simple_op.h"
#include "tests/support/operator_case.h"
#include "tests/support/random_image_nets.h"
#include "tests/support/random_nets.h"

namespace mxtrain::test {
namespace {

using executor::BindRequest;

unsigned NumFuseNets() {
  return NumRandomNets(60);
}

double RootMeanSquare(const std::vector<double>& values) {
  double squares = 0;
  for (double value : values) squares += value * value;
  return std::sqrt(squares / static_cast<double>(values.size()));
}

// Largest distance between elements of two arrays, over the root mean square of the second; over
// all arrays. Gradients that should vanish (of what a later batch norm removes) are rounding errors
// of sums of larger terms: no array counts as smaller than a twentieth of the largest.
double RmsDistance(const Result& got, const Result& expected) {
  REQUIRE(got.size() == expected.size());
  double largest = 0, worst = 0;
  for (const auto& [name, values] : expected) largest = std::max(largest, RootMeanSquare(values));
  for (const auto& [name, values] : expected) {
    const std::vector<double>& others = got.at(name);
    double distance = 0;
    for (size_t i = 0; i < values.size(); ++i)
      distance = std::max(distance, std::abs(others[i] - values[i]));
    worst = std::max(worst, distance / std::max(RootMeanSquare(values), largest / 20));
  }
  return worst;
}

// The fused forms of batch norms, or of other layers: "relu True", "none False" ...
void AddKinds(const Executor& executor, std::set<std::string>* kinds,
              const std::string& type = "_BatchNormActivation") {
  for (const auto& node : executor.graph().nodes) {
    if (node.kind != Node::Kind::kForward || node.op->TypeString() != type) continue;
    std::string kind;
    for (const auto& [key, value] : node.op->GetParams()) {
      if (key == "act" || key == "with_sum") kind += (kind.empty() ? "" : " ") + value;
    }
    kinds->insert(kind);
  }
}

TEST_CASE(
    "a step of a fused random net gives the losses, gradients and moving averages of the unfused "
    "one") {
  const auto runtime = NewRuntime();
  std::set<std::string> kinds;
  for (unsigned seed = 0; seed < NumFuseNets(); ++seed) {
    const SmallNet net = RandomImageNet(TestRegistry(), seed);
    CAPTURE(net.name);
    BindRequest request = RequestFor(net, net.losses);
    Result results[2];
    for (bool fuse : {false, true}) {
      request.fuse = fuse;
      const auto executor = BindWithValues(*runtime, net.losses, request);
      executor->Step(MakeInputs(*runtime, net, executor->input_names()));
      results[fuse] = ResultOf(*executor);
      if (fuse) AddKinds(*executor, &kinds);
    }
    // The kernels compute every value like their unfused parts; only sums of gradients may have
    // another order.
    CHECK(RmsDistance(results[true], results[false]) <= 1e-4);
  }
  if (NumFuseNets() >= 60)
    CHECK(kinds == std::set<std::string>{"none True", "relu False", "relu True", "relu6 False",
                                         "relu6 True"});
}

// Folding a batch norm into the convolution rounds the weights once more; deep nets amplify that.
TEST_CASE("a fused random net infers what the unfused one infers") {
  const auto runtime = NewRuntime();
  std::set<std::string> kinds;
  for (unsigned seed = 0; seed < NumFuseNets(); ++seed) {
    const SmallNet net = RandomImageNet(TestRegistry(), seed);
    CAPTURE(net.name);
    BindRequest request = RequestFor(net, net.features);
    request.is_train = false;
    request.grad_req.clear();
    Result results[2];
    for (bool fuse : {false, true}) {
      request.fuse = fuse;
      const auto executor = BindWithValues(*runtime, net.features, request);
      executor->Forward(MakeInputs(*runtime, net, executor->input_names()));
      results[fuse] = ResultOf(*executor);
      if (fuse) AddKinds(*executor, &kinds, "_ConvolutionActivation");
    }
    CHECK(RmsDistance(results[true], results[false]) <= 1e-3);
  }
  if (NumFuseNets() >= 60)
    CHECK(kinds == std::set<std::string>{"none True", "relu False", "relu True", "relu6 False",
                                         "relu6 True"});
}

// A random net of element-wise operators on three arrays, of which two learn; results are read once
// or several times.
Symbol RandomExpression(unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  const auto layer = [&](const char* op, const std::vector<Symbol>& inputs,
                         const Kwargs& kwargs = {}) {
    return Symbol::Create(TestRegistry(), op, format("{}{}", op, random()), kwargs, inputs);
  };
  std::vector<Symbol> values{Symbol::Variable("data"), Symbol::Variable("a_weight"),
                             Symbol::Variable("b_weight")};
  for (size_t n = 3 + below(12); n-- > 0;) {
    // Late values more often, for long chains.
    const Symbol x = values[values.size() - 1 - below(std::min<size_t>(values.size(), 3))],
                 y = values[below(values.size())];
    switch (below(8)) {
      case 0:
        values.push_back(layer("sigmoid", {x}));
        break;
      case 1:
        values.push_back(layer("Activation", {x}, {{"act_type", "tanh"}}));
        break;
      case 2:
        values.push_back(layer("_mul_scalar", {x}, {{"scalar", "0.75"}}));
        break;
      case 3:
        values.push_back(layer("clip", {x}, {{"a_min", "-0.9"}, {"a_max", "1.1"}}));
        break;
      case 4:
        values.push_back(layer("elemwise_mul", {x, y}));
        break;
      case 5:
        values.push_back(layer("elemwise_sub", {y, x}));
        break;
      case 6:
        values.push_back(layer("ElementWiseSum", {x, y, x}, {{"num_args", "3"}}));
        break;
      default:
        values.push_back(layer("elemwise_add", {x, y}));
    }
  }
  return layer("MakeLoss", {layer("sigmoid", {values.back()})});
}

// Doubles its input, using the scratch that it requests.
void DoubleByScratch(const TBlob& src, const EnvArguments& env, TBlob* ret, OpReqType req,
                     RunContext) {
  REQUIRE(env.resource.size() == 1);
  float* scratch = env.resource[0].GetSpace<float>(src.Size());
  for (int64_t i = 0; i < src.Size(); ++i) scratch[i] = 2 * src.dptr<float>()[i];
  for (int64_t i = 0; i < src.Size(); ++i) Assign(req, ret->dptr<float>(), i, scratch[i]);
}

TEST_CASE("an element-wise operator that requests scratch gets it besides others of its kind") {
  auto registry = BuiltinOperators();
  SimpleOp(*registry, "double_by_scratch")
      .set_function(DeviceType::kCPU, DoubleByScratch, kNoInplace)
      .set_elementwise(Elementwise::kYes)
      .set_resource_request(ResourceRequest::kTempSpace,
                            [](const std::vector<TShape>& in, const EnvArguments&) {
                              return in[0].Size() * static_cast<int64_t>(sizeof(float));
                            });
  RuntimeOptions options;
  options.threads = 1;
  Runtime runtime(options, registry);
  Symbol net = Symbol::Variable("data");
  for (const char* op : {"square", "double_by_scratch", "square"})
    net = Symbol::Create(*registry, op, "", {}, std::vector<Symbol>{net});
  BindRequest request;
  request.is_train = false;
  request.inputs = {"data"};
  request.shapes["data"] = {3};
  const auto executor = Executor::SimpleBind(runtime, net, request);
  executor->Forward(
      std::vector<NDArray>{NDArray::FromVector(runtime, {3}, std::vector<float>{1, 2, -3})});
  CHECK(GetValues(executor->outputs()[0]) == std::vector<double>{4, 64, 324});
}

TEST_CASE(
    "element-wise operators in one pass: losses and gradients of the parts, and no array held "
    "longer") {
  const auto runtime = NewRuntime();
  unsigned fused_nets = 0;
  for (unsigned seed = 0; seed < 4 * NumFuseNets(); ++seed) {
    CAPTURE(seed);
    const Symbol loss = RandomExpression(seed);
    for (bool training : {true, false}) {
      const int64_t width = 8000;  // several blocks, and more than the room for blocks
      const SmallNet net{"expression", loss, loss, {{"data", {3, width}}}, {}, 0};
      BindRequest request = RequestFor(net, loss);
      for (const std::string& name : loss.ListArguments()) request.shapes[name] = {3, width};
      request.is_train = training;
      if (!training) request.grad_req.clear();
      Result results[2];
      int64_t values[2] = {};
      for (bool fuse : {false, true}) {
        request.fuse = fuse;
        const auto executor = BindWithValues(*runtime, loss, request);
        const auto inputs = MakeInputs(*runtime, net, executor->input_names());
        executor->graph().first_backward >= 0 ? executor->Step(inputs) : executor->Forward(inputs);
        results[fuse] = ResultOf(*executor);
        values[fuse] = executor->arena_bytes();
        for (const auto& node : executor->graph().nodes) {
          if (node.kind == Node::Kind::kForward && node.op->TypeString() == "_ElementwiseChain")
            fused_nets += training;
        }
      }
      CHECK(RmsDistance(results[true], results[false]) <= 1e-5);
      CHECK(values[true] <= values[false] + (int64_t{1} << 18));
    }
  }
  if (NumFuseNets() >= 60) CHECK(fused_nets >= NumFuseNets());
}

TEST_CASE("a fused gradient reads nothing that was not kept before") {
  const auto runtime = NewRuntime();
  const auto layer = [](const char* op, const char* name, const std::vector<Symbol>& inputs,
                        const Kwargs& kwargs = {}) {
    return Symbol::Create(TestRegistry(), op, name, kwargs, inputs);
  };
  const auto chains = [&](const Symbol& x) {
    const Symbol loss = layer("MakeLoss", "loss", {x});
    const SmallNet net{"net", loss, loss, {{"data", {2, 100}}}, {}, 0};
    BindRequest request = RequestFor(net, loss);
    const auto executor = BindWithValues(*runtime, loss, request);
    std::string names;
    for (const auto& node : executor->graph().nodes) {
      if (node.kind == Node::Kind::kForward && node.op->TypeString() == "_ElementwiseChain")
        names += format("{};", join(node.origins, "+"));
    }
    return names;
  };
  const Symbol data = Symbol::Variable("data");
  const auto product = [&](const char* name) {
    return layer("FullyConnected", name, {data}, {{"num_hidden", "100"}});
  };
  const Kwargs relu{{"act_type", "relu"}}, tanh{{"act_type", "tanh"}};
  const Symbol a = product("a"), b = product("b"), c = product("c");
  CHECK(chains(layer("elemwise_mul", "swish", {a, layer("sigmoid", "gate", {a})})) ==
        "gate+swish;");
  // The gradient of a ReLU reads its result, not the argument.
  const Symbol twice = layer("_mul_scalar", "twice", {a}, {{"scalar", "2"}});
  CHECK(chains(layer("Activation", "relu", {twice}, relu)) == "twice+relu;");
  // A sum has one gradient for both terms; fused with what follows it would have two.
  const Symbol sum = layer("elemwise_add", "sum", {a, b});
  CHECK(chains(layer("Activation", "relu", {sum}, relu)) == "");
  CHECK(chains(layer("elemwise_add", "more", {twice, b})) == "twice+more;");
  // The result of the tanh was kept, and not its argument: what reads it is not fused with it.
  const Symbol bounded = layer("Activation", "tanh", {twice}, tanh);
  CHECK(chains(layer("elemwise_mul", "scaled", {bounded, c})) == "twice+tanh;");
  // Steps behind one that needs more are fused without it.
  const Symbol half = layer("_mul_scalar", "half", {bounded}, {{"scalar", "0.5"}});
  CHECK(chains(layer("elemwise_add", "more", {half, c})) == "twice+tanh;half+more;");
}

// Large enough for several threads; the pieces must not depend on their number.
TEST_CASE("fused batch norms give the same bits on any number of threads") {
  const auto layer = [](const char* op, const char* name, const std::vector<Symbol>& inputs,
                        const Kwargs& kwargs = {}) {
    return Symbol::Create(TestRegistry(), op, name, kwargs, inputs);
  };
  const Symbol data = Symbol::Variable("data");
  const Symbol first =
      layer("Activation", "relu", {layer("BatchNorm", "first", {data})}, {{"act_type", "relu"}});
  const Symbol sum =
      layer("elemwise_add", "sum",
            {first, layer("BatchNorm", "second", {first}, {{"fix_gamma", "False"}})});
  const Symbol x = layer("clip", "clip", {sum}, {{"a_min", "0"}, {"a_max", "6"}});
  const Symbol loss = layer("MakeLoss", "loss", {layer("square", "square", {x})});
  const SmallNet net{"norms", loss, x, {{"data", {6, 20, 37, 41}}}, {}, 0};
  Result expected;
  for (int threads : {1, 2, 3, 7}) {
    const auto runtime = NewRuntime("threaded", threads);
    const auto executor = BindWithValues(*runtime, net.losses, RequestFor(net, net.losses));
    executor->Step(MakeInputs(*runtime, net, executor->input_names()));
    std::set<std::string> kinds;
    AddKinds(*executor, &kinds);
    CHECK(kinds == std::set<std::string>{"relu False", "relu6 True"});
    if (threads == 1) expected = ResultOf(*executor);
    CHECK(ResultOf(*executor) == expected);
  }
}

}  // namespace
}  // namespace mxtrain::test
