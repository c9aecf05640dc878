// SPDX-License-Identifier: Apache-2.0
// Gradients of imperative programs: against central differences in double, against the same net as
// a symbol, and in training loops.
#include "mxtrain/autograd/autograd.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <set>
#include <thread>

#include "mxtrain/base/error.h"
#include "mxtrain/executor/executor.h"
#include "mxtrain/operator/arithmetic.h"
#include "mxtrain/operator/imperative.h"
#include "tests/support/error_message.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/imperative_calls.h"
#include "tests/support/small_nets.h"

namespace mxtrain::test {
namespace {

using autograd::Backward;
using autograd::CountsOf;
using autograd::GradientOf;
using autograd::GradReq;
using autograd::Pause;
using autograd::Recording;
using autograd::Variables;
using Doubles = std::vector<double>;
using Arrays = std::vector<NDArray>;

double Norm(const NDArray& array) {
  double sum = 0;
  for (const double value : GetValues(array)) sum += value * value;
  return std::sqrt(sum);
}

double Dot(const Doubles& a, const Doubles& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Computes one array from others.
using Program = std::function<NDArray(const Arrays&)>;

// Compares the gradients of a program of float64 arrays of these shapes, with values in [0.2, 0.8],
// with central differences of the program itself, which then is not recorded.
void CheckGradients(const std::vector<TShape>& shapes, const Program& program) {
  const auto runtime = NewRuntime("naive", 1);
  Arrays arrays;
  for (const TShape& shape : shapes) {
    Doubles values = ValuesFor(format("array {}", arrays.size()), shape.Size());
    for (double& value : values) value = 0.5 + 0.3 * value;
    SetValues(arrays.emplace_back(*runtime, shape, DType::kFloat64), values);
  }
  const Variables variables(arrays);
  NDArray head;
  {
    const Recording recording;
    head = program(arrays);
  }
  const NDArray head_gradient(*runtime, head.shape(), DType::kFloat64);
  SetValues(head_gradient, ValuesFor("head", head.shape().Size()));
  const Doubles weights = GetValues(head_gradient);
  Backward({head}, {head_gradient});
  for (size_t k = 0; k < arrays.size(); ++k) {
    CAPTURE(k);
    const Doubles gradient = GetValues(GradientOf(arrays[k])), start = GetValues(arrays[k]);
    for (size_t i = 0; i < start.size(); ++i) {
      constexpr double kDelta = 1e-6;
      double side[2];
      for (const int s : {0, 1}) {
        Doubles moved = start;
        moved[i] += s == 1 ? kDelta : -kDelta;
        SetValues(arrays[k], moved);
        side[s] = Dot(GetValues(program(arrays)), weights);
      }
      SetValues(arrays[k], start);
      CHECK(gradient[i] == doctest::Approx((side[1] - side[0]) / (2 * kDelta)).epsilon(1e-6));
    }
  }
}

TEST_CASE("a loop whose length depends on data") {
  int rounds = 0;
  CheckGradients({{5}, {5}}, [&rounds](const Arrays& in) {
    NDArray h = in[0];
    for (rounds = 0; rounds < 50 && Norm(h) < 6; ++rounds) h = h * in[1] + h;
    return h;
  });
  CHECK(rounds > 1);
  CHECK(rounds < 50);
}

TEST_CASE("numbers that change from call to call") {
  CheckGradients({{3}}, [](const Arrays& in) {
    NDArray h = in[0];
    for (const double s : {0.3, -1.7, 2.25}) h = (h * s + s) * in[0];
    return h;
  });
  // A slope that is a number has its bits.
  const auto runtime = NewRuntime();
  const NDArray w = NDArray::Zeros(*runtime, {2}, DType::kFloat64) + 1;
  const Variables variables({w});
  for (const double slope : {0.1, std::nextafter(0.1, 1), 1e-300}) {
    NDArray y;
    {
      const Recording recording;
      y = w * slope;
    }
    Backward({y});
    CHECK(GetValues(y) == Doubles{slope, slope});
    CHECK(GetValues(GradientOf(w)) == Doubles{slope, slope});
  }
}

TEST_CASE("an array that is read several times") {
  CheckGradients({{3}, {3}}, [](const Arrays& in) {
    const NDArray square = in[0] * in[0];
    return square * in[1] + in[0] * square - 2 / in[0];
  });
}

TEST_CASE("layers") {
  CheckGradients({{2, 3}, {4, 3}, {4}, {2, 4}}, [](const Arrays& in) {
    const NDArray dense = One("FullyConnected", {in[0], in[1], in[2]}, {{"num_hidden", "4"}});
    return One("Activation", {dense}, {{"act_type", "tanh"}}) * in[3];
  });
}

TEST_CASE("several outputs of one call, of which one is unused") {
  CheckGradients({{2, 6}}, [](const Arrays& in) {
    const Arrays parts = Invoke("SliceChannel", in, {{"num_outputs", "3"}});
    return parts[0] * parts[2];
  });
}

TEST_CASE("a composite is recorded as its parts") {
  CheckGradients({{3, 4}}, [](const Arrays& in) { return One("L2Normalization", in) * in[0]; });
}

TEST_CASE("calls in place and calls that add") {
  CheckGradients({{4}, {4}}, [](const Arrays& in) {
    NDArray sum = NDArray::Zeros(in[0].runtime(), {4}, DType::kFloat64);
    NDArray h = in[0] + 1;
    for (int i = 0; i < 3; ++i) {
      h *= in[1];
      sum += h * h;
      sum *= 0.5;
    }
    InvokeInto("elemwise_mul", Arrays{in[0], h}, {&sum, 1}, OpReqType::kAddTo);
    h *= h;
    return sum + h;
  });
}

TEST_CASE("arrays that are overwritten whole by another call") {
  CheckGradients({{4}, {4}}, [](const Arrays& in) {
    const NDArray buffer(in[0].runtime(), {4}, DType::kFloat64);
    InvokeInto("elemwise_mul", in, {&buffer, 1});
    const NDArray product = buffer * in[0];
    InvokeInto("elemwise_add", in, {&buffer, 1});
    const NDArray other = buffer * product;
    InvokeInto("_copy", {&in[0], 1}, {&buffer, 1}, OpReqType::kNullOp);  // writes nothing
    return other + buffer;
  });
}

TEST_CASE("views of attached arrays and of results") {
  CheckGradients({{4, 3}, {2, 3}}, [](const Arrays& in) {
    const NDArray rows = in[0].Slice(1, 3);
    const NDArray product = rows * in[1] + in[0].Slice(2, 4) * rows;  // [2, 3]
    const NDArray flat = product.Reshape({6}) * in[0].Reshape({2, 6}).Slice(0, 1).Reshape({6});
    return flat.Slice(2, 5).Reshape({3, 1});
  });
}

TEST_CASE("a result is written into a part of an array, and read from there") {
  CheckGradients({{2, 3}}, [](const Arrays& in) {
    const NDArray buffer = NDArray::Zeros(in[0].runtime(), {4, 3}, DType::kFloat64);
    const NDArray low = buffer.Slice(0, 2), high = buffer.Slice(2, 4);
    const NDArray before = in[0] * buffer.Slice(1, 3);
    InvokeInto("elemwise_mul", Arrays{in[0], in[0]}, {&low, 1});
    InvokeInto("elemwise_add", Arrays{in[0], low}, {&high, 1});
    return low * high + before;
  });
}

TEST_CASE("the agreement with a symbol is bit for bit") {
  const auto runtime = NewRuntime();
  const std::map<std::string, TShape> shapes = {
      {"fc1_weight", {8, 5}}, {"fc1_bias", {8}}, {"fc2_weight", {3, 8}}, {"fc2_bias", {3}}};
  std::map<std::string, NDArray> args, grads;
  Arrays attached;
  executor::BindRequest request;
  for (const auto& [name, shape] : shapes) {
    args[name] = NDArray(*runtime, shape);
    SetValues(args[name], ValuesFor(name, shape.Size()));
    grads[name] = NDArray(*runtime, shape);
    request.grad_req[name] = GradReq::kWrite;
    attached.push_back(args[name]);
  }
  const NDArray data(*runtime, {6, 5}), label(*runtime, {6});
  SetValues(data, ValuesFor("data", 30));
  SetValues(label, ValuesFor("label", 6, 3));

  const auto layer = [&](const char* op, const char* name, const Kwargs& kwargs,
                         const Symbol& input) {
    return Symbol::Create(runtime->operators(), op, name, kwargs, std::vector<Symbol>{input});
  };
  Symbol net = layer("FullyConnected", "fc1", {{"num_hidden", "8"}}, Symbol::Variable("data"));
  net = layer("Activation", "tanh", {{"act_type", "tanh"}}, net);
  net = layer("FullyConnected", "fc2", {{"num_hidden", "3"}}, net);
  net = layer("SoftmaxOutput", "softmax", {}, net);
  request.inputs = {"data", "softmax_label"};
  request.shapes = {{"data", data.shape()}, {"softmax_label", label.shape()}};
  const auto executor = Executor::Bind(*runtime, net, request, args, grads, {});
  executor->Step(Arrays{data, label});

  const Variables variables(attached);
  NDArray head;
  {
    const Recording recording;
    head =
        One("FullyConnected", {data, args["fc1_weight"], args["fc1_bias"]}, {{"num_hidden", "8"}});
    head = One("Activation", {head}, {{"act_type", "tanh"}});
    head =
        One("FullyConnected", {head, args["fc2_weight"], args["fc2_bias"]}, {{"num_hidden", "3"}});
    head = One("SoftmaxOutput", {head, label});
  }
  Backward({head});  // a loss needs no head gradient
  for (const auto& [name, array] : args) {
    CAPTURE(name);
    CHECK(GetValues(GradientOf(array)) == GetValues(grads[name]));
  }
}

TEST_CASE("several heads, with and without head gradients") {
  const auto runtime = NewRuntime();
  const NDArray w = Floats(*runtime, {1, 2, 3}), x = Floats(*runtime, {4, 5, 6});
  const Variables variables({w});
  NDArray square, product;
  {
    const Recording recording;
    square = w * w;
    product = w * x;
  }
  Backward({square, product}, {}, /*retain=*/true);
  CHECK(GetValues(GradientOf(w)) == Doubles{6, 9, 12});
  Backward({square, product}, {NDArray(), Floats(*runtime, {0, 1, 10})}, /*retain=*/true);
  CHECK(GetValues(GradientOf(w)) == Doubles{2, 9, 66});
  Backward({product, product}, {Floats(*runtime, {1, 1, 1}), Floats(*runtime, {1, 0, 2})});
  CHECK(GetValues(GradientOf(w)) == Doubles{8, 5, 18});
}

TEST_CASE("kWrite overwrites, kAdd adds, arrays that no head depends on keep their gradients") {
  const auto runtime = NewRuntime();
  const NDArray a = Floats(*runtime, {1, 2}), b = Floats(*runtime, {3, 4}),
                c = Floats(*runtime, {5, 6});
  const Variables written({a, c}), added({b}, GradReq::kAdd);
  CHECK(GetValues(GradientOf(b)) == Doubles{0, 0});
  SetValues(written.gradients()[1], {7, 8});
  for (int step = 1; step <= 3; ++step) {
    NDArray loss;
    {
      const Recording recording;
      loss = a * b;
    }
    Backward({loss});
    CHECK(GetValues(GradientOf(a)) == Doubles{3, 4});
    CHECK(GetValues(GradientOf(b)) == Doubles{1.0 * step, 2.0 * step});
  }
  CHECK(GetValues(GradientOf(c)) == Doubles{7, 8});
}

TEST_CASE("what is not recorded is a constant") {
  const auto runtime = NewRuntime();
  const NDArray w = Floats(*runtime, {1, 2}), x = Floats(*runtime, {3, 4});
  const Variables variables({w});
  const auto gradient = [&](const std::function<NDArray()>& program) {
    NDArray head;
    {
      const Recording recording;
      head = program();
    }
    Backward({head});
    return GetValues(GradientOf(w));
  };
  CHECK(gradient([&] { return w * One("_copy", {w}); }) == Doubles{2, 4});
  CHECK(gradient([&] { return w * w.Copy(Context::cpu()); }) == Doubles{1, 2});
  CHECK(gradient([&] { return w * One("BlockGrad", {w}); }) == Doubles{1, 2});
  CHECK(gradient([&] {
          NDArray paused, again;
          {
            const Pause pause;
            paused = w * x;
            const Recording inner;  // on the same tape
            again = w * x;
          }
          return w * paused + again;
        }) == Doubles{3 + 3, 8 + 4});
  // Results of an earlier tape.
  NDArray before;
  CHECK(gradient([&] { return before = w * x; }) == Doubles{3, 4});
  CHECK(gradient([&] { return w * before; }) == Doubles{3, 8});
  // Random numbers that depend on no attached array.
  const NDArray noise(*runtime, {2});
  const Doubles of_noise = gradient([&] {
    InvokeInto("_random_uniform", {}, {&noise, 1});
    return w * noise;
  });
  CHECK(of_noise == GetValues(noise));
}

TEST_CASE("a constant that a recorded call overwrites is copied first") {
  const auto runtime = NewRuntime();
  const NDArray w = Floats(*runtime, {1, 2});
  NDArray x = Floats(*runtime, {3, 4});
  const Variables variables({w});
  NDArray head;
  {
    const Recording recording;
    head = w * x;
    x *= 10;  // depends on no attached array
    head += w * x;
    x += w;
    head += w * x;
  }
  Backward({head});
  CHECK(GetValues(GradientOf(w)) == Doubles{3 + 30 + 30 + 2, 4 + 40 + 40 + 4});
}

TEST_CASE("a prepared call is recorded") {
  const auto runtime = NewRuntime();
  const NDArray w = Floats(*runtime, {1, 2}), x = Floats(*runtime, {3, 4}), out(*runtime, {2});
  const PreparedCall call("elemwise_mul", Arrays{w, x}, {&out, 1}, OpReqType::kWriteTo, {}, {});
  const Variables variables({w});
  NDArray head;
  {
    const Recording recording;
    call.Push(0);
    head = out * out;
  }
  Backward({head});
  CHECK(GetValues(GradientOf(w)) == Doubles{2 * 1 * 9, 2 * 2 * 16});
}

TEST_CASE("Variables is movable; its end detaches") {
  const auto runtime = NewRuntime();
  const NDArray w = Floats(*runtime, {1, 2});
  {
    Variables first({w});
    const Variables second = std::move(first);
    CHECK(GradientOf(w).SameView(second.gradients()[0]));
    CHECK(second.arrays()[0].SameView(w));
  }
  CHECK(MessageOf([&] { GradientOf(w); }) ==
        "GradientOf: the array 'array' (float32 [2]) is not attached; give it to Variables");
  const Variables again({w});
  CHECK(GetValues(GradientOf(w)) == Doubles{0, 0});
}

TEST_CASE("parts of one allocation have their own gradients") {
  const auto runtime = NewRuntime();
  const NDArray all = Floats(*runtime, {1, 2, 3, 4});
  const NDArray low = all.Slice(0, 2), high = all.Slice(2, 4);
  const Variables variables({low, high});
  NDArray head;
  {
    const Recording recording;
    head = low * high * low;
  }
  Backward({head});
  CHECK(GetValues(GradientOf(low)) == Doubles{2 * 1 * 3, 2 * 2 * 4});
  CHECK(GetValues(GradientOf(high)) == Doubles{1, 4});
}

TEST_CASE("a Backward within the Recording releases its tape") {
  const auto runtime = NewRuntime();
  const NDArray w = Floats(*runtime, {1, 2}), x = Floats(*runtime, {3, 4});
  const Variables variables({w}, GradReq::kAdd);
  const Recording recording;
  NDArray h = w * x;
  Backward({h});
  CHECK(GetValues(GradientOf(w)) == Doubles{3, 4});
  h = w * h;  // the old h is a constant now
  Backward({h});
  CHECK(GetValues(GradientOf(w)) == Doubles{3 + 3, 4 + 8});
}

TEST_CASE("a program is bound once for each structure") {
  const auto runtime = NewRuntime();
  const NDArray w = Floats(*runtime, {1, 2});
  const Variables variables({w});
  const auto run = [&](int rounds, double factor) {
    NDArray h = Floats(*runtime, {1, 1});  // another array at each run
    {
      const Recording recording;
      for (int i = 0; i < rounds; ++i) h = h * w * factor;
    }
    Backward({h});
    return GetValues(GradientOf(w))[1];
  };
  for (int step = 0; step < 12; ++step) {
    const int rounds = 1 + step % 3;
    CHECK(run(rounds, 1) == rounds * std::pow(2, rounds - 1));
  }
  CHECK(CountsOf(*runtime).bound == 3);
  CHECK(CountsOf(*runtime).reused == 9);
  // A number is part of the structure. The three before are the least recently used now.
  for (int i = 0; i < autograd::kMostPrograms; ++i) CHECK(run(1, 100 + i) == 100 + i);
  CHECK(CountsOf(*runtime).bound == 3 + autograd::kMostPrograms);
  CHECK(run(1, 105) == 105);
  CHECK(CountsOf(*runtime).bound == 3 + autograd::kMostPrograms);
  CHECK(run(2, 1) == 4);
  CHECK(CountsOf(*runtime).bound == 3 + autograd::kMostPrograms + 1);
}

TEST_CASE("memory is released after Backward, and all of it when arrays are detached") {
  const auto runtime = NewRuntime("naive", 1);
  const auto in_use = [&] {
    runtime->engine().WaitForAll();
    return runtime->storage().GetStats(Context::cpu()).in_use;
  };
  const int64_t at_start = in_use();
  {
    const NDArray w = NDArray::Zeros(*runtime, {1000});
    const Variables variables({w});
    const auto record = [&](bool backward) {
      NDArray h = NDArray::Zeros(*runtime, {1000});
      {
        const Recording recording;
        for (int i = 0; i < 4; ++i) h = h + w;
      }
      if (backward) Backward({h});
    };
    record(true);
    const int64_t after_one = in_use();
    for (int i = 0; i < 3; ++i) record(true);
    CHECK(in_use() == after_one);
    record(false);
    CHECK(in_use() >= after_one + 4 * 4000);  // the tape waits for a Backward
    { const Recording next; }
    CHECK(in_use() == after_one);
  }
  CHECK(in_use() == at_start);
}

TEST_CASE("two threads record at once") {
  const auto runtime = NewRuntime();
  const auto gradients = [&runtime](int thread) {
    const NDArray w = Floats(*runtime, {1, 2, static_cast<float>(thread)});
    const Variables variables({w}, GradReq::kAdd);
    for (int step = 0; step < 20; ++step) {
      NDArray h = Floats(*runtime, {1, 1, 1});
      {
        const Recording recording;
        for (int i = 0; i < 1 + (step + thread) % 3; ++i) h = h * w + w;
      }
      Backward({h});
    }
    return GetValues(GradientOf(w));
  };
  std::vector<Doubles> expected, found(2);
  for (const int thread : {0, 1}) expected.push_back(gradients(thread));
  std::vector<std::thread> threads;
  for (const size_t thread : {0U, 1U}) {
    threads.emplace_back([&, thread] { found[thread] = gradients(static_cast<int>(thread)); });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(found == expected);
}

// Backward looks at every array that was read, which takes a while here; the array that it looks at
// first is detached meanwhile.
TEST_CASE("an array that is detached during Backward is in no program afterwards") {
  constexpr int kReads = 2000;
  constexpr int64_t kElements = 100'000;
  const auto runtime = NewRuntime("naive", 1);
  const auto in_use = [&] {
    runtime->engine().WaitForAll();
    return runtime->storage().GetStats(Context::cpu()).in_use;
  };
  const auto reads = [&] {
    Arrays small;
    for (int i = 0; i < kReads; ++i) small.push_back(NDArray::Zeros(*runtime, {1}));
    return small;
  }();
  const NDArray one = NDArray::Zeros(*runtime, {1});
  const Variables kept({one});
  using Clock = std::chrono::steady_clock;
  Clock::duration until_checked{};  // from the begin of Backward to the first look at an array
  for (int trial = 0; trial < 24; ++trial) {
    const int64_t at_start = in_use();
    auto large = std::make_unique<NDArray>(NDArray::Zeros(*runtime, {kElements}));
    auto variables = std::make_unique<Variables>(Arrays{*large});
    const bool measures = trial == 0;  // detaches before Backward, which then throws at once
    std::atomic<int> stage = 0;
    std::thread thread([&, array = *large]() mutable {
      NDArray head;
      {
        const Recording recording;
        head = Invoke("sum", {&array, 1}, {{"axis", "0"}, {"keepdims", "true"}})[0];
        for (const NDArray& other : reads) head = head + other;
      }
      stage = 1;
      while (measures && stage == 1) std::this_thread::yield();
      const Clock::time_point begin = Clock::now();
      try {
        Backward({head});
        CHECK_FALSE(measures);
      } catch (const Error& e) {
        CHECK(std::string(e.what()).find("was detached") != std::string::npos);
      }
      if (measures) until_checked = Clock::now() - begin;
    });
    while (stage == 0) {
    }
    const Clock::time_point detach = Clock::now() + until_checked * (9 + trial) / 10;
    while (!measures && Clock::now() < detach) {
    }
    variables.reset();
    stage = 2;
    thread.join();
    large.reset();
    // Another tape, which releases that of a Backward that threw, and is released itself.
    {
      const Recording recording;
      const NDArray head = one * one;
    }
    { const Recording next; }
    CHECK(in_use() < at_start + kElements);
  }
}

// Its arrays are freed by a thread that is alive.
TEST_CASE("a thread that ends leaves its tape to the next one") {
  const auto runtime = NewRuntime("naive", 1);
  const auto in_use = [&] {
    runtime->engine().WaitForAll();
    return runtime->storage().GetStats(Context::cpu()).in_use;
  };
  const NDArray w = NDArray::Zeros(*runtime, {1000});
  const Variables variables({w});
  const int64_t before = in_use();
  std::thread([&] {
    const Recording recording;
    const NDArray head = w * w;
  }).join();
  {
    const Recording recording;
    const NDArray head = w * w;
  }
  { const Recording recording; }
  CHECK(in_use() == before);
}

TEST_CASE("on a GPU as on the CPU") {
  const auto runtime = NewFakeGpuRuntime();
  Doubles on_cpu;
  for (const Context ctx : {Context::cpu(), Context::gpu(0)}) {
    const NDArray w = Floats(*runtime, {0.25F, -0.5F, 2}, ctx),
                  x = Floats(*runtime, {1, 2, 3}, ctx);
    const Variables variables({w});
    CHECK(GradientOf(w).ctx() == ctx);
    NDArray h = x;
    {
      const Recording recording;
      for (int i = 0; i < 3; ++i) h = One("tanh", {h * w + x});
    }
    Backward({h.Slice(0, 2)});
    const Doubles gradient = GetValues(GradientOf(w));
    CHECK(gradient[2] == 0);
    if (on_cpu.empty()) on_cpu = gradient;
    CHECK(gradient == on_cpu);
  }
}

// Reads a sequence of inputs [2, 3] until their absolute values add up to 4, and predicts half of
// the first feature of the last one.
class RecurrentNet {
 public:
  explicit RecurrentNet(Runtime& runtime)
      : runtime_(runtime),
        arrays_({New("in_weight", {6, 3}), New("in_bias", {6}), New("state_weight", {6, 6}),
                 New("out_weight", {1, 6}), New("out_bias", {1})}),
        variables_(arrays_) {}

  // One step of gradient descent; returns the loss before it.
  double Train(const std::string& sequence, double scale) {
    NDArray loss;
    {
      const autograd::Recording recording;
      loss = Loss(sequence, scale);
    }
    Backward({loss});
    for (NDArray& array : arrays_) array -= GradientOf(array) * 0.1;
    return GetValues(loss)[0];
  }
  const std::set<int>& lengths() const { return lengths_; }

 private:
  NDArray New(const std::string& name, const TShape& shape, double scale = 0.5) {
    NDArray array(runtime_, shape);
    Doubles values = ValuesFor(name, shape.Size());
    for (double& value : values) value *= scale;
    SetValues(array, values);
    return array;
  }

  NDArray Loss(const std::string& sequence, double scale) {
    NDArray state = NDArray::Zeros(runtime_, {2, 6}), target(runtime_, {2, 1});
    int length = 0;
    for (double sum = 0; sum < 4; ++length) {
      const NDArray in = New(format("{} {}", sequence, length), {2, 3}, scale);
      const Doubles values = GetValues(in);
      for (const double value : values) sum += std::abs(value);
      SetValues(target, {values[0] / 2, values[3] / 2});
      state = One(
          "tanh",
          {One("FullyConnected", {in, arrays_[0], arrays_[1]}, {{"num_hidden", "6"}}) +
           One("FullyConnected", {state, arrays_[2]}, {{"num_hidden", "6"}, {"no_bias", "True"}})});
    }
    lengths_.insert(length);
    const NDArray error =
        One("FullyConnected", {state, arrays_[3], arrays_[4]}, {{"num_hidden", "1"}}) - target;
    return One("sum", {error * error});
  }

  Runtime& runtime_;
  Arrays arrays_;
  const Variables variables_;
  std::set<int> lengths_;
};

// Programs of one device share an arena; the second one's needs more, so its first Backward
// replaces the arena that the failed run has written.
TEST_CASE("an error of one program, thrown or not, does not break another") {
  for (const char* engine : {"naive", "threaded"}) {
    for (const bool thrown : {true, false}) {
      CAPTURE(engine);
      CAPTURE(thrown);
      const auto runtime = NewRuntime(engine, 1);
      const Arrays arrays{NDArray::Zeros(*runtime, {4}), NDArray::Zeros(*runtime, {4096})};
      const Variables variables(arrays);
      const auto train = [&](const NDArray& x, const NDArray& factor) {
        const Recording recording;
        const NDArray product = x * factor;
        Backward({One("sum", {One("tanh", {product}) * product})});
      };
      NDArray broken(*runtime, {4});
      broken.Fill(2);
      const engine::VarHandle writes[] = {broken.var()};
      runtime->engine().PushSync([](RunContext) { Throw(ErrorKind::kData, "lost"); }, {}, writes,
                                 {.name = "read"});
      train(arrays[0], broken);
      if (thrown) CHECK_THROWS_WITH(GradientOf(arrays[0]).WaitToRead(), "read: lost");
      NDArray factor(*runtime, {4096});
      factor.Fill(2);
      NDArray(arrays[1]).Fill(0.5);
      CHECK_NOTHROW(train(arrays[1], factor));
      if (!thrown) CHECK_THROWS_WITH(runtime->engine().WaitForAll(), "read: lost");
      if (!thrown) CHECK_NOTHROW(train(arrays[1], factor));
      // The derivative of tanh(2x) 2x: 2 tanh(2x) + 4x (1 - tanh(2x)^2).
      const double t = std::tanh(1.0);
      CHECK(GetValues(GradientOf(arrays[1]))[4095] == doctest::Approx(2 * t + 2 * (1 - t * t)));
      // The first one's arrays are overwritten, and it runs again.
      broken.Fill(2);
      if (!thrown) CHECK_THROWS_WITH(GradientOf(arrays[0]).WaitToRead(), "read: lost");
      CHECK_NOTHROW(train(arrays[0], broken));
      CHECK(GetValues(GradientOf(arrays[0]))[0] == 0);
    }
  }
}

TEST_CASE("a recurrent net on sequences of different lengths learns") {
  const auto runtime = NewRuntime();
  RecurrentNet net(*runtime);
  const auto epoch = [&net] {
    double loss = 0;
    for (int i = 0; i < 6; ++i) loss += net.Train(format("sequence {}", i), i % 2 ? 0.5 : 1);
    return loss;
  };
  const double first = epoch();
  double last = first;
  for (int i = 0; i < 25; ++i) last = epoch();
  CHECK(last < 0.2 * first);
  CHECK(net.lengths().size() > 1);
  CHECK(CountsOf(*runtime).bound == static_cast<int64_t>(net.lengths().size()));
}

}  // namespace
}  // namespace mxtrain::test
