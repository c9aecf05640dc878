// SPDX-License-Identifier: Apache-2.0
// Parameters of imperative calls, and which calls share a plan.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <thread>

#include "mxtrain/device/blocked_layout.h"
#include "mxtrain/operator/arithmetic.h"
#include "mxtrain/operator/internal/imperative_plan.h"
#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operator/simple_op.h"
#include "tests/support/error_message.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/imperative_calls.h"
#include "tests/support/vectors.h"

namespace mxtrain {
namespace {

using imperative::kMostPlans;
using imperative::PlansMade;
using test::FloatVector;
using test::MessageOf;
using test::One;

// out = x + scalar.
void AddScalar(const TBlob& src, const EnvArguments& env, TBlob* ret, OpReqType req,
               RunContext ctx) {
  const float* x = src.dptr<float>();
  const auto s = static_cast<float>(env.scalar);
  Map<float>(ctx, *ret, req, [x, s](int64_t i) { return x[i] + s; });
}

// The first `scalar` elements.
TShape HeadShape(const TShape&, const EnvArguments& env) {
  return {static_cast<int64_t>(env.scalar)};
}
void Head(const TBlob& src, const EnvArguments&, TBlob* ret, OpReqType req, RunContext ctx) {
  const float* x = src.dptr<float>();
  Map<float>(ctx, *ret, req, [x](int64_t i) { return x[i]; });
}

// As AddScalar, with the scalar of the plan.
class PlannedShift final : public Operator {
 public:
  explicit PlannedShift(double scalar) { env_.scalar = scalar; }
  void Forward(const ForwardArgs& args) override {
    TBlob out = args.out_data[0];
    AddScalar(args.in_data[0], env_, &out, args.req[0], args.ctx.run_ctx);
  }

 private:
  EnvArguments env_;
};

std::unique_ptr<Runtime> ShiftRuntime(const std::string& engine = "naive") {
  auto registry = BuiltinOperators();
  for (const char* name : {"toy_shift", "toy_planned_shift"}) {
    SimpleOp(*registry, name)
        .set_function(DeviceType::kCPU, AddScalar, kInplaceInOut)
        .set_enable_scalar(true);
  }
  registry->AddKernel({"toy_planned_shift", DeviceType::kCPU, "planned", 0,
                       [](const OperatorProperty& property, const PlanRequest& request,
                          Backend&) -> Expected<Plan, Refusal> {
                         Plan plan = PlainPlan(property, request);
                         plan.make = [scalar = SimpleOp::ArgumentsOf(property).scalar] {
                           return std::make_unique<PlannedShift>(scalar);
                         };
                         return plan;
                       }});
  SimpleOp(*registry, "toy_head")
      .set_shape_function(HeadShape)
      .set_function(DeviceType::kCPU, Head, kNoInplace)
      .set_enable_scalar(true);
  RuntimeOptions options;
  options.engine = engine;
  options.threads = 2;
  return std::make_unique<Runtime>(options, registry);
}

// How many plans `calls` makes.
template <typename F>
int64_t PlansOf(Runtime& runtime, const F& calls) {
  const int64_t before = PlansMade(runtime);
  calls();
  return PlansMade(runtime) - before;
}

template <typename T>
T FirstOf(const NDArray& array) {
  T element;
  array.CopyToHost(&element, sizeof element);
  return element;
}

TEST_CASE("a thousand numbers need one plan") {
  const auto runtime = ShiftRuntime("threaded");
  NDArray a = NDArray::Zeros(*runtime, {3}), sum = NDArray::Zeros(*runtime, {3});
  CHECK(PlansOf(*runtime, [&] {
          for (int i = 0; i < 1000; ++i) CHECK((a + i * 0.25).ToVector()[2] == i * 0.25);
        }) == 1);
  CHECK(PlansOf(*runtime, [&] {
          for (int i = 0; i < 1000; ++i) sum += i;
        }) == 1);  // written in place: another request
  CHECK(sum.ToVector() == FloatVector{499500, 499500, 499500});
  CHECK(PlansOf(*runtime, [&] {
          for (int i = 1; i < 1000; ++i) {
            const NDArray x = One("smooth_l1", {a + 100}, {{"scalar", std::to_string(i)}});
            const NDArray y = Invoke("smooth_l1", std::vector{a + 100}, {{"scalar", i}})[0];
            CHECK(x.ToVector() == y.ToVector());
          }
        }) == 999 + 1);  // text is part of the plan
}

TEST_CASE("numbers reach the kernel bit for bit") {
  const auto runtime = ShiftRuntime();
  using Double = std::numeric_limits<double>;
  const double numbers[] = {0.1,
                            std::nextafter(0.1, 1),
                            Double::max(),
                            Double::lowest(),
                            Double::min(),
                            Double::denorm_min(),
                            -1e-310,
                            double{std::numeric_limits<float>::denorm_min()},
                            9007199254740991.0,
                            Double::infinity(),
                            -Double::infinity()};
  const NDArray doubles = NDArray::Zeros(*runtime, {1}, DType::kFloat64),
                floats = NDArray::Zeros(*runtime, {1}),
                longs = NDArray::Zeros(*runtime, {1}, DType::kInt64),
                ints = NDArray::Zeros(*runtime, {1}, DType::kInt32);
  for (const double number : numbers) {
    CAPTURE(number);
    CHECK(std::bit_cast<uint64_t>(FirstOf<double>(doubles + number)) ==
          std::bit_cast<uint64_t>(number));
    if (std::abs(number) <= std::numeric_limits<float>::max() || std::isinf(number)) {
      CHECK(std::bit_cast<uint32_t>(FirstOf<float>(floats + number)) ==
            std::bit_cast<uint32_t>(static_cast<float>(number) + 0.0f));
    }
  }
  CHECK(std::isnan(FirstOf<double>(doubles + NAN)));
  CHECK(std::isnan(FirstOf<float>(floats + NAN)));
  for (const int64_t number : {int64_t{9007199254740991}, -(int64_t{1} << 62), int64_t{-3}}) {
    CHECK(FirstOf<int64_t>(longs + static_cast<double>(number)) == number);
    CHECK(FirstOf<int64_t>(Invoke("_plus_scalar", {&longs, 1}, {{"scalar", number}})[0]) == number);
  }
  CHECK(FirstOf<int32_t>(ints - 2147483647.0) == -2147483647);
}

TEST_CASE("a number that decides more than the function is planned anew") {
  const auto runtime = ShiftRuntime();
  const NDArray x = NDArray::FromVector(*runtime, {3}, {1, 2, 3});
  for (const int n : {2, 3, 1, 2})
    CHECK(Invoke("toy_head", {&x, 1}, {{"scalar", n}})[0].shape() == TShape{n});
  // A kernel that does not take the number with the call.
  for (const double s : {0.5, 2.0, 0.5})
    CHECK(Invoke("toy_planned_shift", {&x, 1}, {{"scalar", s}})[0].ToVector()[0] == 1 + s);
  // Padding stays zero under finite factors only.
  const Layout blocked = runtime->backend(Context::cpu()).Intern(BlockedLayout::FromName("aBcd8b"));
  const NDArray image = NDArray::FromVector(*runtime, {1, 3, 1, 1}, {1, 2, 3}).ToLayout(blocked);
  for (const bool finite : {true, false, true}) {
    const NDArray scaled = image * (finite ? 2.0 : INFINITY);
    CHECK((scaled.layout() == blocked) == finite);
    CHECK(scaled.ToVector()[1] == (finite ? 4.0f : INFINITY));
  }
}

TEST_CASE("a kernel of a GPU, and the host kernel, take the number of each call") {
  for (const bool on_host : {false, true}) {
    const auto runtime =
        on_host ? test::NewFakeGpuRuntimeWithout({"_plus_scalar"}) : test::NewFakeGpuRuntime();
    const NDArray x = NDArray::Zeros(*runtime, {2}, DType::kFloat32, Context::gpu(0));
    CHECK(PlansOf(*runtime, [&] {
            for (const double s : {1.0, -0.5, 3.0}) CHECK((x + s).ToVector()[1] == s);
          }) == 1);
  }
}

TEST_CASE("a prepared call keeps its number") {
  const auto runtime = ShiftRuntime();
  const NDArray x = NDArray::Zeros(*runtime, {1}), y = NDArray::Zeros(*runtime, {1});
  const PreparedCall add_two("toy_shift", {&x, 1}, {&y, 1}, OpReqType::kWriteTo, {{"scalar", 2}},
                             {});
  InvokeInto("toy_shift", {&x, 1}, {&y, 1}, OpReqType::kWriteTo, {{"scalar", 5}});
  CHECK(y.ToVector()[0] == 5);
  add_two.Push(0);
  CHECK(y.ToVector()[0] == 2);
}

TEST_CASE("threads with numbers of their own share a plan") {
  const auto runtime = ShiftRuntime("threaded");
  constexpr int kThreads = 4, kCalls = 500;
  std::vector<int> wrong(kThreads);
  CHECK(PlansOf(*runtime, [&] {
          std::vector<std::thread> threads;
          for (int t = 0; t < kThreads; ++t) {
            threads.emplace_back([&, t] {
              const NDArray x = NDArray::Zeros(*runtime, {1});
              for (int i = 0; i < kCalls; ++i) {
                const int s = t * kCalls + i;
                wrong[static_cast<size_t>(t)] += (x + s).ToVector()[0] != static_cast<float>(s);
              }
            });
          }
          for (std::thread& thread : threads) thread.join();
        }) <= kThreads);
  CHECK(wrong == std::vector<int>(kThreads));
}

TEST_CASE("typed parameters are those of the text") {
  const auto runtime = ShiftRuntime();
  const NDArray x = NDArray::FromVector(*runtime, {2, 3}, {1, 2, 3, 4, 5, 6});
  const auto typed = [&](const char* op, const CallParams& params) {
    return Invoke(op, {&x, 1}, params)[0];
  };
  CHECK(typed("transpose", {{"axes", TShape{1, 0}}}).ToVector() == FloatVector{1, 4, 2, 5, 3, 6});
  CHECK(typed("sum", {{"axis", 1}, {"keepdims", true}}).shape() == TShape{2, 1});
  CHECK(typed("sum", {{"axis", 1}, {"keepdims", false}}).shape() == TShape{2});
  CHECK(typed("sum", {{"axis", 0}, {"keepdims", false}}).ToVector() == FloatVector{5, 7, 9});
  CHECK(typed("clip", {{"a_min", 2.5}, {"a_max", 4}}).ToVector() ==
        FloatVector{2.5, 2.5, 3, 4, 4, 4});
  CHECK(typed("Cast", {{"dtype", "int32"}}).dtype() == DType::kInt32);
  CHECK(PlansOf(*runtime, [&] {
          for (int i = 0; i < 10; ++i) typed("sum", {{"axis", 1}, {"keepdims", true}});
        }) == 0);
  CHECK(MessageOf([&] {
          typed("relu", {{"scalar", 1}});
        }) == MessageOf([&] {
          typed("relu", {{"scalar", "1"}});
        }));
  CHECK(MessageOf([&] {
          typed("sum", {{"axis", 7}});
        }) == MessageOf([&] {
          typed("sum", {{"axis", "7"}});
        }));
  CHECK(MessageOf([&] {
          typed("_plus_scalar", {{"scalar", true}});
        }) == "_plus_scalar: scalar = 'True': expected a number, got 'True'");
}

TEST_CASE("the least recently used plan is dropped") {
  const auto runtime = ShiftRuntime();
  const NDArray x = NDArray::Zeros(*runtime, {1});
  const auto made_for = [&](size_t number) {
    return PlansOf(*runtime, [&] {
      Invoke("toy_shift", {&x, 1}, {{"scalar", std::to_string(number)}});
    });
  };
  for (size_t i = 0; i < kMostPlans; ++i) REQUIRE(made_for(i) == 1);
  CHECK(made_for(0) == 0);
  CHECK(made_for(kMostPlans) == 1);  // in the place of 1
  CHECK(made_for(0) == 0);
  CHECK(made_for(2) == 0);
  CHECK(made_for(1) == 1);  // in the place of 3
  CHECK(made_for(3) == 1);
  CHECK(made_for(0) == 0);
}

}  // namespace
}  // namespace mxtrain
