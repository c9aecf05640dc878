// SPDX-License-Identifier: Apache-2.0
// Nets whose nodes have equal names, and operators that request random numbers twice, draw
// independent numbers; a program that binds the same nets in the same order draws the same.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "mxtrain/executor/executor.h"
#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/simple_op.h"
#include "tests/support/imperative_calls.h"
#include "tests/support/small_nets.h"

namespace mxtrain::test {
namespace {

using executor::BindRequest;
using executor::GradReq;
using Vector = std::vector<float>;

constexpr int64_t kElements = 64;

// [0, n) from the first request, [n, 2n) from the second; the gradient draws again.
void DrawTwice(const TBlob& src, const EnvArguments& env, TBlob* ret, OpReqType req, RunContext) {
  const int64_t half = src.Size() / 2;
  for (int64_t i = 0; i < src.Size(); ++i) {
    const Resource& from = env.resource[i < half ? 0 : 1];
    Assign(req, ret->dptr<float>(), i, from.Uniform(static_cast<uint64_t>(i % half)));
  }
}
void DrawTwiceBack(const OutputGrad& head, const EnvArguments& env, TBlob* grad, OpReqType req,
                   RunContext run) {
  DrawTwice(head.data, env, grad, req, run);
}

std::shared_ptr<OperatorRegistry> WithDrawTwice() {
  auto registry = BuiltinOperators();
  SimpleOp(*registry, "draw_twice")
      .set_function(DeviceType::kCPU, DrawTwice, kNoInplace)
      .set_gradient(DeviceType::kCPU, DrawTwiceBack, kNoInplace)
      .set_resource_request(ResourceRequest::kRandom)
      .set_resource_request(ResourceRequest::kRandom);
  return registry;
}

Symbol Dropped(const OperatorRegistry& registry, const std::string& name) {
  const Symbol data = Symbol::Variable("data");
  return Symbol::Create(registry, "Dropout", name, {{"p", "0.5"}}, std::span(&data, 1));
}

BindRequest DrawRequest() {
  BindRequest request;
  request.shapes = {{"data", {kElements}}};
  return request;
}

// What of ones `steps` training passes keep.
Vector Draws(Executor& executor, int steps = 2) {
  NDArray(executor.arg("data")).Fill(1);
  Vector all;
  for (int step = 0; step < steps; ++step) {
    executor.Forward({});
    const Vector values = executor.outputs()[0].ToVector();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

TEST_CASE("nets with nodes of the same names draw different numbers, the same in every program") {
  std::vector<std::vector<Vector>> programs;
  for (int program = 0; program < 2; ++program) {
    const auto runtime = NewRuntime("threaded", 2, 3);
    const Symbol net = Dropped(runtime->operators(), "drop");
    std::vector<std::unique_ptr<Executor>> executors;
    std::vector<Vector>& draws = programs.emplace_back();
    for (int i = 0; i < 4; ++i) {
      executors.push_back(Executor::SimpleBind(*runtime, net, DrawRequest()));
      if (i == 1) executors[0].reset();  // its numbers do not come again
    }
    for (size_t i = 1; i < executors.size(); ++i) draws.push_back(Draws(*executors[i]));
    CHECK(std::set<Vector>(draws.begin(), draws.end()).size() == draws.size());
    // As the first, whatever is bound before.
    BindRequest as_first = DrawRequest();
    as_first.namesake = 0;
    draws.push_back(Draws(*Executor::SimpleBind(*runtime, net, as_first)));
    const auto fresh = NewRuntime("threaded", 2, 3);
    const Symbol other = Dropped(fresh->operators(), "other");
    const auto bound_before = Executor::SimpleBind(*fresh, other, DrawRequest());
    CHECK(Draws(*Executor::SimpleBind(*fresh, net, DrawRequest())) == draws.back());
    CHECK(Draws(*bound_before) != draws.back());
    // A new seed restarts the count of nets too.
    runtime->resources().Seed(3);
    CHECK(Draws(*Executor::SimpleBind(*runtime, net, DrawRequest())) == draws.back());
  }
  CHECK(programs[0] == programs[1]);
}

TEST_CASE("executors of the same parameters are one net") {
  const auto runtime = NewRuntime("threaded", 2, 3);
  const Symbol net = Dropped(runtime->operators(), "drop");
  const auto first = Executor::SimpleBind(*runtime, net, DrawRequest()),
             second = Executor::SimpleBind(*runtime, net, DrawRequest()),
             sharing = Executor::SimpleBind(*runtime, net, DrawRequest(), second.get());
  CHECK(Draws(*second) == Draws(*sharing));
  CHECK(Draws(*first) != Draws(*second));
  const auto replica = [&](int number) {
    BindRequest request = DrawRequest();
    request.replica = number;
    return Executor::SimpleBind(*runtime, net, request);
  };
  const auto one = replica(1), again = replica(1);
  CHECK(Draws(*one) != Draws(*again));
}

TEST_CASE("two requests of one operator draw different numbers, in a net and in a call") {
  const auto registry = WithDrawTwice();
  RuntimeOptions options;
  options.seed = 3;
  Runtime runtime(options, registry);
  const auto halves = [](const Vector& values) {
    const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
    return std::pair(Vector(values.begin(), middle), Vector(middle, values.end()));
  };
  const Symbol data = Symbol::Variable("data");
  const Symbol net = Symbol::Create(*registry, "draw_twice", "twice", {}, std::span(&data, 1));
  BindRequest request = DrawRequest();
  request.grad_req = {{"data", GradReq::kWrite}};
  const auto executor = Executor::SimpleBind(runtime, net, request);
  const Vector drawn = Draws(*executor, 1);
  const auto [first, second] = halves(drawn);
  CHECK(first != second);
  // The first draws what a single request of the node would.
  const auto uniform = [&](uint64_t i) {
    return UniformAt(3, StreamOf("twice"), executor->random_step(), i);
  };
  for (size_t i = 0; i < first.size(); ++i) CHECK(first[i] == uniform(i));
  const NDArray head = NDArray::Zeros(runtime, TShape({kElements}));
  executor->Backward({&head, 1});
  CHECK(executor->grad("data").ToVector() == drawn);

  const NDArray in = NDArray::Zeros(runtime, TShape({kElements}));
  const auto [of_call, of_call_too] = halves(Invoke("draw_twice", {&in, 1})[0].ToVector());
  CHECK(of_call != of_call_too);
  CHECK(of_call[0] == UniformAt(3, StreamOf("draw_twice"), 0, 0));
}

}  // namespace
}  // namespace mxtrain::test
