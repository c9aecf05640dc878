// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/executor/executor.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "mxtrain/base/error.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/operator_case.h"
#include "tests/support/small_nets.h"

namespace mxtrain::test {
namespace {

using executor::BindRequest;
using executor::GradReq;
void CheckClose(const Result& got, const Result& expected, double tolerance) {
  REQUIRE(got.size() == expected.size());
  for (const auto& [name, values] : expected) {
    CAPTURE(name);
    const std::vector<double>& others = got.at(name);
    REQUIRE(others.size() == values.size());
    double worst = 0;
    for (size_t i = 0; i < values.size(); ++i)
      worst = std::max(worst, std::abs(others[i] - values[i]) / (1 + std::abs(values[i])));
    CHECK(worst <= tolerance);
  }
}

Result StepOnce(Runtime& runtime, const SmallNet& net, const BindRequest& request) {
  const auto executor = BindWithValues(runtime, net.losses, request);
  executor->Step(MakeInputs(runtime, net, executor->input_names(), request.types.begin()->second));
  return ResultOf(*executor);
}

TEST_CASE("gradients are the central differences of Forward, in double" *
          doctest::test_suite("long")) {
  const auto runtime = NewRuntime("naive", 1);
  for (const SmallNet& net : SmallNets(TestRegistry())) {
    CAPTURE(net.name);
    BindRequest request = RequestFor(net, net.features, DType::kFloat64);
    request.reference_kernels = true;
    const auto executor = BindWithValues(*runtime, net.features, request);
    const std::vector<NDArray> inputs =
        MakeInputs(*runtime, net, executor->input_names(), DType::kFloat64);
    std::vector<NDArray> heads;
    for (const NDArray& output : executor->outputs()) {
      heads.emplace_back(*runtime, output.shape(), DType::kFloat64);
      SetValues(heads.back(), ValuesFor(format("head {}", heads.size()), output.shape().Size()));
    }
    executor->Forward(inputs);
    executor->Backward(heads);
    const auto loss = [&] {
      executor->Forward(inputs);
      double sum = 0;
      for (size_t i = 0; i < heads.size(); ++i) {
        const std::vector<double> out = GetValues(executor->outputs()[i]),
                                  head = GetValues(heads[i]);
        for (size_t k = 0; k < out.size(); ++k) sum += out[k] * head[k];
      }
      return sum;
    };
    for (const auto& [name, grad] : executor->grads()) {
      CAPTURE(name);
      const std::vector<double> gradient = GetValues(grad), start = GetValues(executor->arg(name));
      const size_t stride = std::max<size_t>(start.size() / 7, 1);
      for (size_t i = 0; i < start.size(); i += stride) {
        std::vector<double> moved = start;
        constexpr double kDelta = 1e-6;
        double side[2];
        for (int s = 0; s < 2; ++s) {
          moved[i] = start[i] + (s ? kDelta : -kDelta);
          SetValues(executor->arg(name), moved);
          side[s] = loss();
        }
        SetValues(executor->arg(name), start);
        CHECK(gradient[i] == doctest::Approx((side[1] - side[0]) / (2 * kDelta)).epsilon(1e-6));
      }
    }
  }
}

// float32: sums of several hundred products of order one, in different orders.
TEST_CASE("chosen kernels, fused and blocked, agree with the reference kernels") {
  const auto runtime = NewRuntime();
  for (const SmallNet& net : SmallNets(TestRegistry())) {
    CAPTURE(net.name);
    BindRequest request = RequestFor(net, net.losses), reference = request;
    reference.reference_kernels = true;
    CheckClose(StepOnce(*runtime, net, request), StepOnce(*runtime, net, reference), 2e-4);
    request.fuse = false;
    CheckClose(StepOnce(*runtime, net, request), StepOnce(*runtime, net, reference), 2e-4);
  }
}

TEST_CASE("engines and repetition change no bit") {
  const auto naive = NewRuntime("naive"), threaded = NewRuntime("threaded");
  std::vector<SmallNet> nets = SmallNets(TestRegistry());
  nets.push_back(DropoutNet(TestRegistry()));
  for (const SmallNet& net : nets) {
    CAPTURE(net.name);
    const BindRequest request = RequestFor(net, net.losses);
    const Result expected = StepOnce(*naive, net, request);
    CHECK(StepOnce(*threaded, net, request) == expected);
    CHECK(StepOnce(*threaded, net, request) == expected);
  }
}

TEST_CASE("replicas differ in their random numbers, and in nothing else") {
  const auto runtime = NewRuntime();
  for (const bool draws : {true, false}) {
    const SmallNet net = draws ? DropoutNet(TestRegistry()) : SmallNets(TestRegistry())[0];
    std::vector<Result> results;
    for (const int replica : {0, 1, 2, 1}) {
      BindRequest request = RequestFor(net, net.losses);
      request.replica = replica;
      results.push_back(StepOnce(*runtime, net, request));
    }
    CHECK(results[3] == results[1]);
    CHECK((results[0] != results[1]) == draws);
    CHECK((results[0] != results[2]) == draws);
    CHECK((results[1] != results[2]) == draws);
  }
}

TEST_CASE("Forward and Backward are a Step, bit for bit") {
  const auto runtime = NewRuntime();
  std::vector<SmallNet> nets = SmallNets(TestRegistry());
  nets.push_back(DropoutNet(TestRegistry()));
  for (const SmallNet& net : nets) {
    CAPTURE(net.name);
    const auto executor = BindWithValues(*runtime, net.losses, RequestFor(net, net.losses));
    const auto inputs = MakeInputs(*runtime, net, executor->input_names());
    executor->Step(inputs);
    const Result step = ResultOf(*executor);
    SetParameters(*executor);
    executor->set_random_step(0);
    executor->Forward(inputs);
    executor->Backward();
    CHECK(ResultOf(*executor) == step);
    CHECK(executor->random_step() == 1);
  }
}

TEST_CASE("kAdd adds to the gradient arrays; a null request makes no array") {
  const auto runtime = NewRuntime();
  for (const SmallNet& net : SmallNets(TestRegistry())) {
    CAPTURE(net.name);
    BindRequest request = RequestFor(net, net.losses);
    const Result once = StepOnce(*runtime, net, request);
    const std::string without_grad = request.grad_req.begin()->first;
    for (auto& [name, req] : request.grad_req) req = GradReq::kAdd;
    request.grad_req[without_grad] = GradReq::kNull;
    const auto executor = BindWithValues(*runtime, net.losses, request);
    CHECK_FALSE(executor->grads().contains(without_grad));
    const auto inputs = MakeInputs(*runtime, net, executor->input_names());
    for (const auto& [name, grad] : executor->grads()) NDArray(grad).Fill(3);
    for (int i = 0; i < 2; ++i) executor->Step(inputs);
    for (const auto& [name, grad] : executor->grads()) {
      CAPTURE(name);
      const std::vector<double>&expected = once.at("gradient of " + name), got = GetValues(grad);
      for (size_t i = 0; i < got.size(); ++i)
        CHECK(got[i] == doctest::Approx(3 + 2 * expected[i]).epsilon(1e-4));
    }
  }
}

TEST_CASE("an evaluation executor shares parameters and arena, and disturbs no training step") {
  const auto runtime = NewRuntime();
  for (const SmallNet& net : SmallNets(TestRegistry())) {
    CAPTURE(net.name);
    const BindRequest request = RequestFor(net, net.losses);
    const auto alone = BindWithValues(*runtime, net.losses, request),
               train = BindWithValues(*runtime, net.losses, request);
    BindRequest evaluate = request;
    evaluate.is_train = false;
    evaluate.grad_req.clear();
    const auto eval = Executor::SimpleBind(*runtime, net.losses, evaluate, train.get());
    for (const auto& [name, array] : eval->args()) CHECK(array.SharesMemory(train->arg(name)));
    for (int i = 0; i < 4; ++i) {
      const auto inputs =
          MakeInputs(*runtime, net, train->input_names(), DType::kFloat32, std::to_string(i));
      alone->Step(inputs);
      train->Step(inputs);
      eval->Forward(inputs);
      CHECK(ResultOf(*train) == ResultOf(*alone));
      // The other executor's own evaluation, unshared and unfused.
      BindRequest plain = evaluate;
      plain.fuse = false;
      plain.reference_kernels = true;
      const auto apart = Executor::SimpleBind(*runtime, net.losses, plain);
      for (const auto& [name, array] : apart->args()) NDArray(array).CopyFrom(alone->arg(name));
      for (const auto& [name, array] : apart->auxs()) NDArray(array).CopyFrom(alone->aux(name));
      apart->Forward(inputs);
      for (size_t o = 0; o < eval->outputs().size(); ++o) {
        const auto got = GetValues(eval->outputs()[o]), expected = GetValues(apart->outputs()[o]);
        for (size_t k = 0; k < got.size(); ++k)
          CHECK(got[k] == doctest::Approx(expected[k]).epsilon(1e-4));
      }
    }
  }
}

TEST_CASE(
    "in inference batch norms fold into convolutions, follow changed parameters, and give the "
    "unfolded result") {
  const auto runtime = NewRuntime();
  const SmallNet net = SmallNets(TestRegistry())[1];
  BindRequest request = RequestFor(net, net.features);
  request.is_train = false;
  request.grad_req.clear();
  const auto folded = BindWithValues(*runtime, net.features, request);
  request.fuse = false;
  const auto apart = BindWithValues(*runtime, net.features, request);
  bool any = false;
  for (const auto& node : folded->graph().nodes) any |= node.precomputed;
  CHECK(any);
  const auto inputs = MakeInputs(*runtime, net, folded->input_names());
  for (double gamma : {1.5, -0.5}) {
    for (const auto* executor : {&folded, &apart})
      NDArray((*executor)->arg("left_bn_gamma")).Fill(gamma);
    for (const auto* executor : {&folded, &apart}) (*executor)->Forward(inputs);
    CheckClose(ResultOf(*folded), ResultOf(*apart), 1e-4);
  }
}

TEST_CASE(
    "a reshaped executor has the same parameters and serves another batch, while earlier steps are "
    "in flight") {
  const auto runtime = NewRuntime();
  for (SmallNet net : SmallNets(TestRegistry())) {
    CAPTURE(net.name);
    const auto small = BindWithValues(*runtime, net.losses, RequestFor(net, net.losses));
    const auto small_inputs = MakeInputs(*runtime, net, small->input_names());
    small->Step(small_inputs);
    const Result expected_small = ResultOf(*small);
    SetParameters(*small);
    std::map<std::string, TShape> shapes;
    for (auto* group : {&net.data, &net.labels}) {
      for (auto& [name, shape] : *group) {
        shape[0] *= 5;
        shapes[name] = shape;
      }
    }
    for (int i = 0; i < 3; ++i) small->Forward(small_inputs);
    const auto large = small->Reshape(shapes);
    CHECK(large->arena_bytes() > small->arena_bytes());
    for (const auto& [name, array] : small->args()) CHECK(large->arg(name).SharesMemory(array));
    small->Step(small_inputs);
    CHECK(ResultOf(*small) == expected_small);
    SetParameters(*small);
    large->Step(MakeInputs(*runtime, net, large->input_names()));
    CheckClose(ResultOf(*large), StepOnce(*runtime, net, RequestFor(net, net.losses)), 1e-4);
  }
}

// The shapes of the net's inputs in a batch of this size.
std::map<std::string, TShape> ShapesOf(const SmallNet& net, int64_t batch) {
  std::map<std::string, TShape> shapes;
  for (const auto* group : {&net.data, &net.labels}) {
    for (auto [name, shape] : *group) {
      shape[0] = batch;
      shapes[name] = shape;
    }
  }
  return shapes;
}

TEST_CASE("an arena that grows never coexists with the larger one") {
  const auto runtime = NewRuntime();
  const SmallNet net = SmallNets(TestRegistry())[1];
  const auto small = BindWithValues(*runtime, net.losses, RequestFor(net, net.losses));
  small->Step(MakeInputs(*runtime, net, small->input_names()));
  runtime->engine().WaitForAll();
  const auto stats = [&] { return runtime->storage().GetStats(Context::cpu()); };
  const int64_t before = stats().peak;
  const auto large = small->Reshape(ShapesOf(net, 50));
  REQUIRE(stats().in_use > before);
  CHECK(stats().peak < stats().in_use + small->arena_bytes());
}

TEST_CASE("an arena that cannot grow is unchanged, for the executors that share it") {
  RuntimeOptions options;
  options.threads = 1;
  options.new_gpu_backend = [] { return NewFakeGpuBackend(int64_t{1} << 20); };
  Runtime runtime(options, NewFakeGpuRuntime()->operators_ptr());
  const SmallNet net = SmallNets(TestRegistry())[1];
  BindRequest request = RequestFor(net, net.losses);
  request.ctx = Context::gpu();
  const auto small = BindWithValues(runtime, net.losses, request);
  const auto inputs = MakeInputs(runtime, net, small->input_names());
  small->Step(inputs);
  const Result expected = ResultOf(*small);
  CHECK_THROWS_WITH_AS(small->Reshape(ShapesOf(net, 1000)), doctest::Contains("('arena')"), Error);
  SetParameters(*small);
  small->Step(inputs);
  CHECK(ResultOf(*small) == expected);
}

TEST_CASE("a monitor sees the outputs of everything that runs, plain") {
  const auto runtime = NewRuntime();
  for (const SmallNet& net : SmallNets(TestRegistry())) {
    CAPTURE(net.name);
    BindRequest request = RequestFor(net, net.losses);
    request.fuse = false;
    const auto executor = BindWithValues(*runtime, net.losses, request);
    const auto inputs = MakeInputs(*runtime, net, executor->input_names());
    std::map<std::string, int> seen;
    executor->SetMonitor(
        [&](const std::string& name, const TBlob& value) {
          ++seen[name];
          CHECK(value.layout.plain());
          CHECK(value.data != nullptr);
        },
        2);
    for (int i = 0; i < 4; ++i) executor->Step(inputs);
    runtime->engine().WaitForAll();
    const auto& plan = executor->memory_plan();
    for (size_t id = 0; id < executor->graph().nodes.size(); ++id) {
      const auto& node = executor->graph().nodes[id];
      if (node.kind != Node::Kind::kForward || !plan.runs[id] || plan.aliased[id][0]) continue;
      CHECK(seen[node.name + "_" + node.op->ListOutputs()[0]] == 2);
    }
    seen.clear();
    executor->SetMonitor({});
    executor->Step(inputs);
    runtime->engine().WaitForAll();
    CHECK(seen.empty());
  }
}

TEST_CASE("one array may serve two inputs") {
  const auto runtime = NewRuntime();
  const SmallNet net = SmallNets(TestRegistry())[3];
  const auto executor = BindWithValues(*runtime, net.losses, RequestFor(net, net.losses));
  REQUIRE(executor->input_names()[0] == "left_data");
  REQUIRE(executor->input_names()[1] == "right_data");
  std::vector<NDArray> inputs = MakeInputs(*runtime, net, executor->input_names());
  NDArray copy = inputs[0].Copy(Context::cpu());
  executor->Step(std::vector<NDArray>{inputs[0], copy, inputs[2]});
  const Result expected = ResultOf(*executor);
  executor->Step(std::vector<NDArray>{inputs[0], inputs[0], inputs[2]});
  CHECK(ResultOf(*executor) == expected);
}

TEST_CASE("what cannot be bound or run is rejected by name") {
  const auto runtime = NewRuntime();
  const SmallNet net = SmallNets(TestRegistry())[0];
  const BindRequest request = RequestFor(net, net.losses);
  const auto executor = BindWithValues(*runtime, net.losses, request);
  const auto inputs = MakeInputs(*runtime, net, executor->input_names());
  CHECK_THROWS_WITH(executor->Step(std::vector<NDArray>{inputs[0]}),
                    doctest::Contains("takes 2 inputs"));
  CHECK_THROWS_WITH(executor->Step(std::vector<NDArray>{inputs[1], inputs[0]}),
                    doctest::Contains("input 'data' must be float32"));
  CHECK_THROWS_WITH(executor->Step(std::vector<NDArray>{NDArray(), inputs[1]}),
                    doctest::Contains("an empty array"));
  CHECK_THROWS_WITH(executor->arg("fc1_weigth"), doctest::Contains("did you mean 'fc1_weight'?"));

  const auto features = BindWithValues(*runtime, net.features, RequestFor(net, net.features));
  const std::vector<NDArray> data{inputs[0]};
  CHECK_THROWS_WITH(features->Step(data), doctest::Contains("is not a loss"));
  features->Forward(data);
  CHECK_THROWS_WITH(features->Backward(), doctest::Contains("needs a head gradient"));

  BindRequest evaluation = request;
  evaluation.grad_req.clear();
  const auto forward = BindWithValues(*runtime, net.losses, evaluation);
  CHECK_THROWS_WITH(forward->Step(inputs), doctest::Contains("without gradients"));

  BindRequest misspelt = request;
  misspelt.grad_req["fc1_weigth"] = GradReq::kWrite;
  CHECK_THROWS_WITH(Executor::SimpleBind(*runtime, net.losses, misspelt),
                    doctest::Contains("did you mean 'fc1_weight'?"));
  BindRequest contradiction = request;
  contradiction.shapes["fc1_weight"] = TShape{9, 6};
  CHECK_THROWS_WITH(Executor::SimpleBind(*runtime, net.losses, contradiction),
                    doctest::Contains("fc1"));

  executor->Step(inputs);  // rejected calls leave it usable
  CHECK(std::isfinite(GetValues(executor->outputs()[0])[0]));
}

// The planner replaces them by aliases where it can, so a sign of a zero must not depend on that.
TEST_CASE(
    "gradients that an operator declares to be its head gradient have its very bits, that of -0 "
    "too") {
  const auto runtime = NewRuntime();
  for (const char* op : {"elemwise_add", "ElementWiseSum"}) {
    CAPTURE(op);
    const Symbol sum =
        Symbol::Create(TestRegistry(), op, "sum", {},
                       std::vector<Symbol>{Symbol::Variable("a"), Symbol::Variable("b")});
    BindRequest request;
    for (const char* name : {"a", "b"}) {
      request.shapes[name] = {4};
      request.grad_req[name] = GradReq::kWrite;
    }
    const auto executor = BindWithValues(*runtime, sum, request);
    const std::vector<float> bits = {-0.0f, 0.0f, -1.5f, 3e-39f};
    executor->Forward({});
    executor->Backward(std::vector<NDArray>{NDArray::FromVector(*runtime, {4}, bits)});
    for (const auto& [name, grad] : executor->grads()) {
      CAPTURE(name);
      const std::vector<float> got = grad.ToVector();
      CHECK(std::memcmp(got.data(), bits.data(), sizeof(float) * bits.size()) == 0);
    }
  }
}

TEST_CASE("after the first step storage allocates nothing") {
  const auto runtime = NewRuntime();
  for (const SmallNet& net : SmallNets(TestRegistry())) {
    CAPTURE(net.name);
    const auto executor = BindWithValues(*runtime, net.losses, RequestFor(net, net.losses));
    const auto inputs = MakeInputs(*runtime, net, executor->input_names());
    executor->Step(inputs);
    runtime->engine().WaitForAll();
    const Storage::Stats first = runtime->storage().GetStats(Context::cpu());
    for (int i = 2; i <= 20; ++i) executor->Step(inputs);
    runtime->engine().WaitForAll();
    const Storage::Stats last = runtime->storage().GetStats(Context::cpu());
    CHECK(last.allocations == first.allocations);
    CHECK(last.in_use == first.in_use);
  }
}

}  // namespace
}  // namespace mxtrain::test
