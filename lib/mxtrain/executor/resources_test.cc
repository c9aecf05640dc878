// SPDX-License-Identifier: Apache-2.0
// Resources of a bound net: random numbers after a new seed, and temporary space whose size is
// known only when an operator runs.
#include <doctest/doctest.h>

#include <algorithm>

#include "mxtrain/executor/executor.h"
#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/simple_op.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/operator_case.h"
#include "tests/support/small_nets.h"

namespace mxtrain::test {
namespace {

using executor::BindRequest;
using executor::GradReq;
using executor::MemoryPlan;

constexpr int64_t kFloat = sizeof(float);

// y = 2 x, and dx = 3 dy, through scratch.
void Scale(float factor, const TBlob& from, const EnvArguments& env, TBlob* to, OpReqType req) {
  float* scratch = env.resource[0].GetSpace<float>(from.Size());
  for (int64_t i = 0; i < from.Size(); ++i) scratch[i] = factor * from.dptr<float>()[i];
  for (int64_t i = 0; i < from.Size(); ++i) Assign(req, to->dptr<float>(), i, scratch[i]);
}
void Forward(const TBlob& src, const EnvArguments& env, TBlob* ret, OpReqType req, RunContext) {
  Scale(2, src, env, ret, req);
}
void Backward(const OutputGrad& head, const EnvArguments& env, TBlob* grad, OpReqType req,
              RunContext) {
  Scale(3, head.data, env, grad, req);
}

// y = x and dx = dy by copies on the device, which are done later.
Backend* gpu = nullptr;
void CopyOnGpu(const TBlob& from, const EnvArguments& env, TBlob* to, OpReqType req,
               RunContext run) {
  REQUIRE(req == OpReqType::kWriteTo);
  const int64_t bytes = from.Size() * kFloat;
  float* scratch = env.resource[0].GetSpace<float>(from.Size());
  gpu->CopyBytes(run, run.ctx, from.data, run.ctx, scratch, bytes);
  gpu->CopyBytes(run, run.ctx, scratch, run.ctx, to->data, bytes);
}
void CopyBackOnGpu(const OutputGrad& head, const EnvArguments& env, TBlob* grad, OpReqType req,
                   RunContext run) {
  CopyOnGpu(head.data, env, grad, req, run);
}

void AddByScratch(OperatorRegistry* registry) {
  SimpleOp(*registry, "by_scratch")
      .set_function(DeviceType::kCPU, Forward, kNoInplace)
      .set_gradient(DeviceType::kCPU, Backward, kNoInplace)
      .set_resource_request(ResourceRequest::kTempSpace);
}

Symbol BareLayer(const OperatorRegistry& registry, const char* op, const std::string& name,
                 const Symbol& in) {
  return Symbol::Create(registry, op, name, {}, std::vector<Symbol>{in});
}

void AddByScratchOnGpu(OperatorRegistry* registry) {
  AddByScratch(registry);
  SimpleOp(*registry, "by_scratch")
      .set_function(DeviceType::kGPU, CopyOnGpu, kNoInplace)
      .set_gradient(DeviceType::kGPU, CopyBackOnGpu, kNoInplace);
}

// Through scratch of different sizes: twice, and once.
Symbol Branches(const OperatorRegistry& registry) {
  const Symbol data = Symbol::Variable("data"), small = Symbol::Variable("small");
  const Symbol a = BareLayer(registry, "by_scratch", "a", data),
               b = BareLayer(registry, "by_scratch", "b", small);
  const Symbol losses[] = {
      BareLayer(registry, "MakeLoss", "loss_b", b),
      BareLayer(registry, "MakeLoss", "loss_a", BareLayer(registry, "by_scratch", "a2", a))};
  return Symbol::Group(losses);
}

BindRequest RequestOn(Context ctx) {
  BindRequest request;
  request.ctx = ctx;
  request.shapes = {{"data", {2, 50}}, {"small", {3}}};
  request.grad_req = {{"data", GradReq::kWrite}, {"small", GradReq::kWrite}};
  return request;
}

// Steps of the net, whose layers scale by these factors.
void CheckSteps(Runtime& runtime, Context ctx, float forward, float backward) {
  const Symbol net = Branches(runtime.operators());
  const auto executor = Executor::SimpleBind(runtime, net, RequestOn(ctx));
  for (int step = 1; step <= 3; ++step) {
    const auto x = static_cast<float>(step);
    NDArray(executor->arg("data")).Fill(x);
    NDArray(executor->arg("small")).Fill(-x);
    executor->Step({});
    CHECK(executor->outputs()[0].ToVector() == std::vector<float>(3, -forward * x));
    CHECK(executor->outputs()[1].ToVector() == std::vector<float>(100, forward * forward * x));
    CHECK(executor->grad("small").ToVector() == std::vector<float>(3, backward));
    CHECK(executor->grad("data").ToVector() == std::vector<float>(100, backward * backward));
  }
}

TEST_CASE("space of unknown size comes from the pool, not from the plan") {
  for (const char* engine : {"naive", "threaded"}) {
    CAPTURE(engine);
    auto registry = BuiltinOperators();
    AddByScratch(registry.get());
    RuntimeOptions options;
    options.engine = engine;
    options.threads = 1;
    Runtime runtime(options, registry);
    const auto bound =
        Executor::SimpleBind(runtime, Branches(*registry), RequestOn(Context::cpu()));
    int unsized = 0;
    for (const std::vector<int>& requests : bound->memory_plan().temp_space_of)
      unsized +=
          static_cast<int>(std::count(requests.begin(), requests.end(), MemoryPlan::kUnknownSize));
    CHECK(unsized == 6);  // three layers, forward and backward
    CHECK(executor::SummarizeMemory(Branches(*registry).graph(), RequestOn(Context::cpu()), runtime)
              .unsized_requests == 6);
    CheckSteps(runtime, Context::cpu(), 2, 3);
    const ResourceStats stats = runtime.resources().GetStats(Context::cpu());
    CHECK(stats.spaces.size() == 1);
    CHECK(stats.bytes == 100 * kFloat);
    CHECK(stats.taken == 3 * 6);
  }
}

TEST_CASE("on a GPU, operators share a space in the order of the stream") {
  const auto runtime = NewFakeGpuRuntimeWithout({}, {}, AddByScratchOnGpu);
  gpu = &runtime->backend(Context::gpu());
  CheckSteps(*runtime, Context::gpu(), 1, 1);
  const ResourceStats stats = runtime->resources().GetStats(Context::gpu());
  CHECK(stats.spaces.size() == 1);
  CHECK(stats.bytes == 100 * kFloat);
  CHECK(stats.taken == 3 * 6);
}

TEST_CASE("an operator that the host computes for a GPU takes space of the host") {
  const auto runtime = NewFakeGpuRuntimeWithout({}, {}, AddByScratch);
  CheckSteps(*runtime, Context::gpu(), 2, 3);
  CHECK(runtime->resources().GetStats(Context::cpu()).bytes == 100 * kFloat);
  CHECK(runtime->resources().GetStats(Context::gpu()).bytes == 0);
}

TEST_CASE("after the same seed an executor repeats its steps") {
  const SmallNet net = DropoutNet(TestRegistry());
  const BindRequest request = RequestFor(net, net.losses);
  const auto two_steps = [&](Runtime& runtime, Executor& executor) {
    std::vector<Result> results;
    SetParameters(executor);
    const auto inputs = MakeInputs(runtime, net, executor.input_names());
    for (int step = 0; step < 2; ++step) {
      executor.Step(inputs);
      results.push_back(ResultOf(executor));
    }
    return results;
  };
  const auto runtime = NewRuntime("threaded", 2, 3), other = NewRuntime("threaded", 2, 4);
  const auto executor = BindWithValues(*runtime, net.losses, request),
             fresh = BindWithValues(*other, net.losses, request);
  const auto first = two_steps(*runtime, *executor);
  CHECK(first[0] != first[1]);
  CHECK(two_steps(*runtime, *executor) != first);
  runtime->resources().Seed(3);
  CHECK(executor->random_step() == 0);
  CHECK(two_steps(*runtime, *executor) == first);
  runtime->resources().Seed(4);
  CHECK(two_steps(*runtime, *executor) == two_steps(*other, *fresh));
  CHECK(runtime->resources().GetStats(Context::cpu()).random_runs > 0);

  // A backward pass repeats the draws of its forward pass, whatever is seeded in between.
  runtime->resources().Seed(3);
  SetParameters(*executor);
  executor->Forward(MakeInputs(*runtime, net, executor->input_names()));
  runtime->resources().Seed(9);
  executor->Backward();
  CHECK(ResultOf(*executor) == first[0]);
}

}  // namespace
}  // namespace mxtrain::test
