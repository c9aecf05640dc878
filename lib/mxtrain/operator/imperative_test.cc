// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/imperative.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <future>
#include <thread>

#include "mxtrain/device/blocked_layout.h"
#include "mxtrain/operator/arithmetic.h"
#include "mxtrain/operator/internal/run_ahead.h"
#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/simple_op.h"
#include "tests/support/error_message.h"
#include "tests/support/vectors.h"

namespace mxtrain {
namespace {

using test::FloatVector;
using test::MessageOf;

// out[i] = x[n - 1 - i]: grants no in-place pair, since it would read what it has written.
void Reverse(const TBlob& src, const EnvArguments&, TBlob* ret, OpReqType req, RunContext ctx) {
  const float* x = src.dptr<float>();
  const int64_t n = src.Size();
  Map<float>(ctx, *ret, req, [x, n](int64_t i) { return x[n - 1 - i]; });
}

// Uses scratch: out[i] = x[i] - mean.
void Center(const TBlob& src, const EnvArguments& env, TBlob* ret, OpReqType req, RunContext ctx) {
  float* mean = env.resource[0].GetSpace<float>(1);
  *mean = 0;
  for (int64_t i = 0; i < src.Size(); ++i)
    *mean += src.dptr<float>()[i] / static_cast<float>(src.Size());
  const float* x = src.dptr<float>();
  Map<float>(ctx, *ret, req, [x, mean](int64_t i) { return x[i] - *mean; });
}

void AddNoise(const TBlob& src, const EnvArguments& env, TBlob* ret, OpReqType req,
              RunContext ctx) {
  const float* x = src.dptr<float>();
  const Resource random = env.resource[0];
  Map<float>(ctx, *ret, req,
             [x, random](int64_t i) { return x[i] + random.Uniform(static_cast<uint64_t>(i)); });
}

std::shared_ptr<OperatorRegistry> Operators() {
  auto registry = BuiltinOperators();
  SimpleOp(*registry, "toy_reverse").set_function(DeviceType::kCPU, Reverse, kNoInplace);
  SimpleOp(*registry, "toy_center")
      .set_function(DeviceType::kCPU, Center, kInplaceInOut)
      .set_resource_request(
          ResourceRequest::kTempSpace,
          [](const std::vector<TShape>&, const EnvArguments&) { return int64_t{4}; });
  SimpleOp(*registry, "toy_noise")
      .set_function(DeviceType::kCPU, AddNoise, kInplaceInOut)
      .set_resource_request(ResourceRequest::kRandom);
  return registry;
}

std::unique_ptr<Runtime> ToyRuntime(const std::string& engine, uint64_t seed = 0) {
  RuntimeOptions options;
  options.engine = engine;
  options.threads = 2;
  options.seed = seed;
  return std::make_unique<Runtime>(options, Operators());
}

FloatVector InvokeOne(std::string_view op, const NDArray& x, const Kwargs& kwargs = {}) {
  return Invoke(op, {&x, 1}, kwargs)[0].ToVector();
}

TEST_CASE("a chain of calls keeps its order") {
  const auto runtime = ToyRuntime("threaded");
  NDArray sum = NDArray::Zeros(*runtime, {1000});
  const NDArray one = NDArray::Zeros(*runtime, {1000}) + 1.0;
  for (int i = 0; i < 200; ++i) {
    sum += one;
    if (i % 10 == 0) sum *= 0.5;
  }
  double expected = 0;
  for (int i = 0; i < 200; ++i) {
    expected += 1;
    if (i % 10 == 0) expected *= 0.5;
  }
  CHECK(sum.ToVector()[999] == doctest::Approx(expected));
}

TEST_CASE("a caller cannot run far ahead of the engine") {
  const auto runtime = ToyRuntime("threaded");
  std::promise<void> gate;
  NDArray sum = NDArray::Zeros(*runtime, {1});
  const engine::VarHandle writes[] = {sum.var()};
  runtime->engine().PushSync([opened = gate.get_future().share()](RunContext) { opened.wait(); },
                             {}, writes, {});
  std::atomic<int> pushed = 0;
  auto caller = std::async(std::launch::async, [&] {
    for (; pushed < 10000; ++pushed) sum = sum + 1.0;
  });
  for (int before = -1; before != pushed;) {  // until it stops changing
    before = pushed;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  CHECK(pushed <= imperative::RunAhead::kMostCalls);
  gate.set_value();
  caller.get();
  CHECK(sum.ToVector()[0] == 10000);
}

// Completes asynchronous functions when it is told to.
class Later {
 public:
  void Hold(Runtime& runtime, const NDArray& array) {
    const engine::VarHandle writes[] = {array.var()};
    runtime.engine().PushAsync(
        [this](RunContext, engine::Callback callback) {
          held_.set_value(std::make_unique<engine::Callback>(std::move(callback)));
        },
        {}, writes, {.property = engine::FnProperty::kIO, .name = "held"});
    callback_ = held_.get_future().get();
  }
  void Complete() { (*callback_)(); }

 private:
  std::promise<std::unique_ptr<engine::Callback>> held_;
  std::unique_ptr<engine::Callback> callback_;
};

TEST_CASE("calls behind an asynchronous function that the caller completes return, however many") {
  const auto runtime = ToyRuntime("threaded");
  NDArray sum = NDArray::Zeros(*runtime, {1});
  Later later;
  later.Hold(*runtime, sum);
  constexpr int kCalls = 5 * imperative::RunAhead::kMostCalls;
  // Other work comes and goes meanwhile.
  NDArray other = NDArray::Zeros(*runtime, {1});
  for (int i = 0; i < kCalls; ++i) {
    sum = sum + 1.0;
    if (i % 100 == 0) other = other + 1.0;
  }
  CHECK(other.ToVector()[0] == kCalls / 100 + 1);
  later.Complete();
  CHECK(sum.ToVector()[0] == kCalls);
}

TEST_CASE("memory is taken without a wait for what the caller completes") {
  const auto runtime = ToyRuntime("threaded");
  Later later;
  {
    // More than Storage lets wait for its deletion without asking for some.
    const NDArray large(*runtime, {32 << 20});
    large.data();
    later.Hold(*runtime, large);
  }
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 50; ++i) NDArray(*runtime, {1000}).data();
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
  later.Complete();
  runtime->engine().WaitForAll();
}

TEST_CASE(
    "a call inside a function of the engine does not wait for itself, however many there are") {
  const auto runtime = ToyRuntime("threaded");
  const NDArray one = NDArray::Zeros(*runtime, {1}) + 1.0;
  const NDArray done = NDArray::Zeros(*runtime, {1});
  const engine::VarHandle writes[] = {done.var()};
  runtime->engine().PushSync(
      [&](RunContext) {
        for (int i = 0; i < 2 * imperative::RunAhead::kMostCalls; ++i) Invoke("_copy", {&one, 1});
      },
      {}, writes, {});
  runtime->engine().WaitForAll();
  CHECK((one + 1.0).ToVector()[0] == 2);
}

TEST_CASE(
    "an output that is an input goes through a copy where the operator does not work in place") {
  const auto runtime = ToyRuntime("threaded");
  const NDArray a = NDArray::FromVector(*runtime, {4}, {1, 2, 3, 4});
  InvokeInto("toy_reverse", {&a, 1}, {&a, 1});
  CHECK(a.ToVector() == FloatVector{4, 3, 2, 1});
  InvokeInto("toy_reverse", {&a, 1}, {&a, 1}, OpReqType::kAddTo);
  CHECK(a.ToVector() == FloatVector{5, 5, 5, 5});
  // Parts of one array: overlapping, then disjoint.
  const NDArray b = NDArray::FromVector(*runtime, {5}, {1, 2, 3, 4, 5});
  const NDArray front = b.Slice(0, 3), back = b.Slice(2, 5);
  InvokeInto("toy_center", {&front, 1}, {&back, 1});
  CHECK(b.ToVector() == FloatVector{1, 2, -1, 0, 1});
  const NDArray first = b.Slice(0, 2), last = b.Slice(3, 5);
  InvokeInto("toy_reverse", {&first, 1}, {&last, 1});
  CHECK(b.ToVector() == FloatVector{1, 2, -1, 2, 1});
}

TEST_CASE("request kinds") {
  const auto runtime = ToyRuntime("threaded");
  const NDArray x = NDArray::FromVector(*runtime, {2}, {1, 2}),
                out = NDArray::FromVector(*runtime, {2}, {10, 20});
  InvokeInto("toy_reverse", {&x, 1}, {&out, 1}, OpReqType::kNullOp);
  CHECK(out.ToVector() == FloatVector{10, 20});
  InvokeInto("toy_reverse", {&x, 1}, {&out, 1}, OpReqType::kAddTo);
  CHECK(out.ToVector() == FloatVector{12, 21});
  InvokeInto("toy_reverse", {&x, 1}, {&out, 1}, OpReqType::kWriteInplace);
  CHECK(out.ToVector() == FloatVector{2, 1});
}

TEST_CASE(
    "opaque layouts are kept where the operator runs over them, and converted where it does not") {
  const auto runtime = ToyRuntime("threaded");
  const Layout blocked = runtime->backend(Context::cpu()).Intern(BlockedLayout::FromName("aBcd8b"));
  const NDArray plain = NDArray::FromVector(*runtime, {1, 3, 1, 2}, {-1, 2, -3, 4, -5, 6});
  const NDArray x = plain.ToLayout(blocked);
  const NDArray y = Invoke("relu", {&x, 1})[0];
  CHECK(y.layout() == blocked);
  CHECK(y.ToVector() == FloatVector{0, 2, 0, 4, 0, 6});
  const NDArray z = Invoke("toy_reverse", {&x, 1})[0];
  CHECK(z.layout().plain());
  CHECK(z.ToVector() == FloatVector{6, -5, 4, -3, 2, -1});
  InvokeInto("toy_reverse", {&x, 1}, {&x, 1}, OpReqType::kAddTo);
  CHECK(x.ToVector() == FloatVector{5, -3, 1, 1, -3, 5});
  CHECK(InvokeOne("exp", plain)[0] == doctest::Approx(std::exp(-1.0)));
}

TEST_CASE("random draws: a fresh step each call, the same again for the same seed") {
  FloatVector first, second;
  for (int run = 0; run < 2; ++run) {
    const auto runtime = ToyRuntime(run == 0 ? "naive" : "threaded", 7);
    const NDArray x = NDArray::Zeros(*runtime, {5});
    const FloatVector a = InvokeOne("toy_noise", x), b = InvokeOne("toy_noise", x);
    CHECK(a != b);
    if (run == 1) CHECK(a == first);
    if (run == 1) CHECK(b == second);
    first = a;
    second = b;
  }
  const auto other = ToyRuntime("naive", 8);
  CHECK(InvokeOne("toy_noise", NDArray::Zeros(*other, {5})) != first);
  const NDArray out = NDArray::Zeros(*other, {6});
  InvokeInto("uniform", {}, {&out, 1}, OpReqType::kWriteTo, {{"low", "5"}, {"high", "6"}});
  for (const float v : out.ToVector()) CHECK((v >= 5 && v < 6));
}

TEST_CASE("updates mutate weight and state") {
  const auto runtime = ToyRuntime("threaded");
  const NDArray w = NDArray::FromVector(*runtime, {2}, {1, 2}),
                g = NDArray::FromVector(*runtime, {2}, {0.5, -1});
  const NDArray scalars = NDArray::FromVector(*runtime, {4}, {0.1f, 0, 1, 1});
  const NDArray m = NDArray::Zeros(*runtime, {2});
  const NDArray in[] = {w, g, scalars};
  for (int step = 0; step < 2; ++step) {
    InvokeInto("sgd_mom_update", in, {&w, 1}, OpReqType::kWriteInplace, {{"momentum", "0.5"}},
               {&m, 1});
  }
  CHECK(m.ToVector()[0] == doctest::Approx(-0.075));
  CHECK(w.ToVector()[1] == doctest::Approx(2.25));
  CHECK(MessageOf([&] {
          InvokeInto("sgd_mom_update", in, {&w, 1}, OpReqType::kWriteTo, {}, {&w, 1});
        }) == "sgd_mom_update: an output and an auxiliary state share memory");
}

TEST_CASE("errors name the operator and what is wrong") {
  const auto runtime = ToyRuntime("naive");
  const NDArray a = NDArray::Zeros(*runtime, {3}), b = NDArray::Zeros(*runtime, {4});
  const NDArray pair[] = {a, b};
  CHECK(MessageOf([&] { a + b; }) == "elemwise_add: rhs has shape [4], but [3] was expected");
  CHECK(MessageOf([&] { Invoke("relu", pair); }) == "relu takes 1 argument (data), but got 2");
  CHECK(MessageOf([&] {
          InvokeInto("relu", {&a, 1}, {&b, 1});
        }) == "relu: data has shape [3], but [4] was expected");
  CHECK(MessageOf([&] {
          Invoke("rellu", {&a, 1});
        }) == "there is no operator 'rellu'; did you mean 'relu'?");
  CHECK(MessageOf([&] { Invoke("uniform", {}); }) ==
        "uniform takes no input; use InvokeInto with an output array");
  CHECK(MessageOf([&] {
          Invoke("relu", {&a, 1}, {{"slope", "1"}});
        }) == "relu has no parameter 'slope'; it takes none");
  const NDArray none;
  CHECK(MessageOf([&] {
          Invoke("relu", {&none, 1});
        }) == "relu got an empty array; allocate it first");
}

}  // namespace
}  // namespace mxtrain
