// SPDX-License-Identifier: Apache-2.0
// Operators that behave otherwise in training, in recorded programs: Backward draws the numbers of
// the recorded calls again, and auxiliary states change once.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "mxtrain/autograd/autograd.h"
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
using autograd::GradientOf;
using autograd::GradReq;
using autograd::Pause;
using autograd::Recording;
using autograd::Variables;
using Arrays = std::vector<NDArray>;
using Numbers = std::vector<double>;

NDArray Filled(Runtime& runtime, const std::string& name, const TShape& shape,
               DType type = DType::kFloat64, Context ctx = Context::cpu()) {
  NDArray array(runtime, shape, type);
  Numbers values = ValuesFor(name, shape.Size());
  for (double& value : values) value += value < 0 ? -0.1 : 0.1;
  SetValues(array, values);
  return ctx == Context::cpu() ? array : array.Copy(ctx);
}

// Elements of y / x, which are those of the gradient of sum(y) if y is x times constants.
void CheckFactors(const NDArray& x, const NDArray& y, const NDArray& gradient) {
  const Numbers in = GetValues(x), out = GetValues(y), found = GetValues(gradient);
  for (size_t i = 0; i < in.size(); ++i) {
    CAPTURE(i);
    CHECK(found[i] == doctest::Approx(out[i] / in[i]).epsilon(1e-9));
  }
}

int64_t CountZeros(const NDArray& array) {
  const Numbers values = GetValues(array);
  return std::count(values.begin(), values.end(), 0);
}

TEST_CASE("Dropout: the gradient has the factors of the recorded calls") {
  const auto runtime = NewRuntime();
  const NDArray x = Filled(*runtime, "x", {40, 25});
  const Variables variables({x});
  Numbers before;
  for (int step = 0; step < 3; ++step) {
    CAPTURE(step);
    NDArray y;
    {
      const Recording recording;
      y = One("Dropout", {One("Dropout", {x}, {{"p", "0.25"}})}, {{"p", "0.25"}});
    }
    // Not the factors of one call twice, which would be 250.
    CHECK(std::abs(CountZeros(y) - 437) < 80);
    CHECK(GetValues(y) != before);
    before = GetValues(y);
    Backward({y}, {}, /*retain=*/true);
    CheckFactors(x, y, GradientOf(x));
    Backward({y});  // the tape serves again
    CheckFactors(x, y, GradientOf(x));
  }
  CHECK(autograd::CountsOf(*runtime).bound == 1);
}

TEST_CASE("Dropout in a loop, beside calls that are not recorded, and one that adds") {
  const auto runtime = NewRuntime();
  const NDArray x = Filled(*runtime, "x", {64}), constant = Filled(*runtime, "c", {64});
  const Variables variables({x});
  NDArray y = x, sum = NDArray::Zeros(*runtime, {64}, DType::kFloat64);
  {
    const Recording recording;
    for (int i = 0; i < 3; ++i) {
      y = One("Dropout", {y}, {{"p", "0.1"}});
      CHECK(CountZeros(One("Dropout", {constant})) > 0);  // depends on nothing attached
      const Pause pause;
      CHECK(GetValues(One("Dropout", {y})) == GetValues(y));  // in evaluation mode
    }
    InvokeInto("Dropout", Arrays{y}, Arrays{sum}, OpReqType::kAddTo);
    InvokeInto("Dropout", Arrays{x}, Arrays{sum}, OpReqType::kAddTo);
  }
  Backward({sum});
  CheckFactors(x, sum, GradientOf(x));
}

TEST_CASE("other operators that draw") {
  const auto runtime = NewRuntime();
  const NDArray x = Filled(*runtime, "x", {8, 30});
  const NDArray query = Filled(*runtime, "q", {2, 2, 8, 4}),
                key = Filled(*runtime, "k", {2, 2, 8, 4});
  const NDArray value = Filled(*runtime, "v", {2, 2, 8, 4});
  const Variables variables({x, value});
  NDArray leaky, attention;
  {
    const Recording recording;
    leaky = One("LeakyReLU", {x},
                {{"act_type", "rrelu"}, {"lower_bound", "0.1"}, {"upper_bound", "0.9"}});
    attention = One("scaled_dot_product_attention", {query, key, value}, {{"dropout_p", "0.5"}});
  }
  Backward({leaky, attention});
  CheckFactors(x, leaky, GradientOf(x));
  // The result is linear in the values, so their products with the gradient add up to its sum.
  double products = 0, sum = 0;
  const Numbers values = GetValues(value), gradient = GetValues(GradientOf(value));
  for (size_t i = 0; i < values.size(); ++i) products += values[i] * gradient[i];
  for (const double number : GetValues(attention)) sum += number;
  CHECK(products == doctest::Approx(sum).epsilon(1e-9));
}

TEST_CASE("random numbers that were seeded between a call and Backward are an error") {
  const auto runtime = NewRuntime();
  const NDArray x = Filled(*runtime, "x", {64});
  const Variables variables({x});
  NDArray y;
  {
    const Recording recording;
    y = One("Dropout", {x});
  }
  const uint64_t seed = runtime->resources().seed();
  runtime->resources().Seed(seed + 1);
  CHECK(MessageOf([&] { Backward({y}); }) ==
        "Backward: the random numbers were seeded anew after a recorded call drew some; seed "
        "before the Recording, or after Backward");
  runtime->resources().Seed(seed);
  Backward({y});
  CheckFactors(x, y, GradientOf(x));
}

TEST_CASE("Dropout on a GPU draws as on the CPU") {
  Numbers on_cpu;
  for (const Context ctx : {Context::cpu(), Context::gpu(0)}) {
    const auto runtime = NewFakeGpuRuntime();
    const NDArray x = Filled(*runtime, "x", {64}, DType::kFloat32, ctx);
    const Variables variables({x});
    NDArray y;
    {
      const Recording recording;
      y = One("Dropout", {x}, {{"p", "0.5"}});
    }
    Backward({y});
    const Numbers gradient = GetValues(GradientOf(x).Copy(Context::cpu()));
    CHECK(CountZeros(GradientOf(x).Copy(Context::cpu())) > 10);
    if (on_cpu.empty()) on_cpu = gradient;
    CHECK(gradient == on_cpu);
    CheckFactors(x.Copy(Context::cpu()), y.Copy(Context::cpu()),
                 GradientOf(x).Copy(Context::cpu()));
  }
}

struct Normalized {
  explicit Normalized(Runtime& runtime)
      : arrays{Filled(runtime, "data", {4, 3, 2, 2}), Filled(runtime, "gamma", {3}),
               Filled(runtime, "beta", {3})},
        mean(Filled(runtime, "mean", {3})),
        variance(runtime, {3}, DType::kFloat64),
        weights(Filled(runtime, "weights", {4, 3, 2, 2})) {
    variance = 2.5;
  }
  NDArray Compute(const Kwargs& kwargs = {{"fix_gamma", "false"}}) const {
    return Invoke("BatchNorm", arrays, kwargs, Arrays{mean, variance})[0] * weights;
  }

  Arrays arrays;
  NDArray mean, variance, weights;
};

// Of each channel, by the definition.
std::pair<Numbers, Numbers> MomentsOf(const NDArray& data) {
  const Numbers x = GetValues(data);
  Numbers means(3), variances(3);
  for (int pass = 0; pass < 2; ++pass) {
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t c = i / 4 % 3;
      if (pass == 0) means[c] += x[i] / 16;
      if (pass == 1) variances[c] += (x[i] - means[c]) * (x[i] - means[c]) / 16;
    }
  }
  return {means, variances};
}

TEST_CASE("BatchNorm: statistics of the batch, gradients by central differences") {
  for (const char* global : {"false", "true"}) {
    CAPTURE(global);
    const auto runtime = NewRuntime("naive", 1);
    const Normalized net(*runtime);
    const Kwargs kwargs = {{"fix_gamma", "false"}, {"use_global_stats", global}};
    const Variables variables(net.arrays);
    const auto total = [&] {
      const Recording recording;
      double sum = 0;
      for (const double number : GetValues(net.Compute(kwargs))) sum += number;
      return sum;
    };
    NDArray head;
    {
      const Recording recording;
      head = net.Compute(kwargs);
    }
    Backward({head});
    const Normalized fresh(*runtime);
    CHECK((GetValues(net.mean) == GetValues(fresh.mean)) == (global == std::string("true")));
    CHECK((GetValues(net.variance) == GetValues(fresh.variance)) ==
          (global == std::string("true")));
    Arrays gradients;
    for (const NDArray& array : net.arrays)
      gradients.push_back(GradientOf(array).Copy(array.ctx()));
    for (size_t k = 0; k < net.arrays.size(); ++k) {
      CAPTURE(k);
      const Numbers start = GetValues(net.arrays[k]), gradient = GetValues(gradients[k]);
      for (size_t i = 0; i < start.size(); ++i) {
        constexpr double kDelta = 1e-5;
        double side[2];
        for (const int s : {0, 1}) {
          Numbers moved = start;
          moved[i] += s == 1 ? kDelta : -kDelta;
          SetValues(net.arrays[k], moved);
          side[s] = total();
        }
        SetValues(net.arrays[k], start);
        CHECK(gradient[i] == doctest::Approx((side[1] - side[0]) / (2 * kDelta)).epsilon(1e-5));
      }
    }
  }
}

TEST_CASE(
    "BatchNorm: the moving averages change in Backward, once for each call that it leads through") {
  const auto runtime = NewRuntime();
  const Normalized net(*runtime);
  const auto [means, variances] = MomentsOf(net.arrays[0]);
  Numbers mean = GetValues(net.mean), variance = GetValues(net.variance);
  const auto check = [&](int times) {
    for (size_t c = 0; c < 3; ++c) {
      for (int i = 0; i < times; ++i) {
        mean[c] = 0.9 * mean[c] + 0.1 * means[c];
        variance[c] = 0.9 * variance[c] + 0.1 * variances[c];
      }
      CHECK(GetValues(net.mean)[c] == doctest::Approx(mean[c]).epsilon(1e-6));
      CHECK(GetValues(net.variance)[c] == doctest::Approx(variance[c]).epsilon(1e-6));
    }
  };
  const Variables variables(net.arrays);
  for (int step = 0; step < 3; ++step) {
    CAPTURE(step);
    NDArray once, unused, twice;
    {
      const Recording recording;
      once = net.Compute();
      unused = net.Compute();
      twice = net.Compute() + net.Compute();
    }
    check(0);
    Backward({once}, {}, /*retain=*/true);
    check(1);
    Backward({once}, {}, /*retain=*/true);
    check(1);
    Backward({twice});  // two layers share the states
    check(2);
  }
  CHECK(autograd::CountsOf(*runtime).bound == 2);
  const Normalized other(*runtime);  // the same structure with other states
  {
    const Variables of_other(other.arrays);
    const Recording recording;
    Backward({other.Compute()});
  }
  check(0);
  CHECK(GetValues(other.mean)[0] ==
        doctest::Approx(0.9 * GetValues(Normalized(*runtime).mean)[0] + 0.1 * means[0]));
  {
    const Recording recording;
    const Pause pause;
    net.Compute();  // in evaluation mode
  }
  net.Compute();
  check(0);
}

// Convolution, BatchNorm, ReLU, Dropout, dense layer and softmax, on batches of 8 images of 2 x 6
// x 6.
class ImageNet {
 public:
  explicit ImageNet(Runtime& runtime) : runtime_(runtime) {
    const std::map<std::string, TShape> shapes = {{"conv_weight", {4, 2, 3, 3}}, {"conv_bias", {4}},
                                                  {"norm_gamma", {4}},           {"norm_beta", {4}},
                                                  {"fc_weight", {3, 144}},       {"fc_bias", {3}}};
    for (const auto& [name, shape] : shapes) {
      args[name] = Filled(runtime, name, shape, DType::kFloat32);
      args[name] *= 0.2;
    }
    args["norm_gamma"] = 1.0;
    for (const char* name : {"norm_moving_mean", "norm_moving_var"}) {
      auxs[name] = NDArray(runtime, {4});
      auxs[name] = name == std::string("norm_moving_var") ? 1.0 : 0.0;
    }
  }

  Arrays Batch(int step) const {
    const NDArray data =
                      Filled(runtime_, format("data {}", step % 4), {8, 2, 6, 6}, DType::kFloat32),
                  label(runtime_, {8});
    SetValues(label, ValuesFor(format("label {}", step % 4), 8, 3));
    return {data, label};
  }
  void Descend(const std::string& name, const NDArray& gradient) {
    args[name] -= gradient * 0.0125;
  }

  std::map<std::string, NDArray> args, auxs;

 private:
  Runtime& runtime_;
};

const Kwargs kConv = {{"kernel", "(3, 3)"}, {"pad", "(1, 1)"}, {"num_filter", "4"}};
const Kwargs kNorm = {{"fix_gamma", "false"}};
const Kwargs kDrop = {{"p", "0.3"}};
const Kwargs kDense = {{"num_hidden", "3"}};

double LossOf(const NDArray& probabilities, const NDArray& label) {
  const Numbers p = GetValues(probabilities), classes = GetValues(label);
  double loss = 0;
  for (size_t i = 0; i < classes.size(); ++i)
    loss -= std::log(p[i * 3 + static_cast<size_t>(classes[i])]) / 8;
  return loss;
}

Numbers LossesByExecutor(Runtime& runtime, ImageNet* net, int steps) {
  const auto layer = [&](const char* op, const char* name, const Kwargs& kwargs,
                         const Symbol& input) {
    return Symbol::Create(runtime.operators(), op, name, kwargs, std::vector<Symbol>{input});
  };
  Symbol symbol = layer("Convolution", "conv", kConv, Symbol::Variable("data"));
  symbol = layer("BatchNorm", "norm", kNorm, symbol);
  symbol = layer("Activation", "relu", {{"act_type", "relu"}}, symbol);
  // The name under which a recording's first Dropout draws.
  symbol = layer("Dropout", "recorded_dropout0", kDrop, symbol);
  symbol = layer("FullyConnected", "fc", kDense, symbol);
  symbol = layer("SoftmaxOutput", "softmax", {}, symbol);
  executor::BindRequest request;
  request.inputs = {"data", "softmax_label"};
  request.shapes = {{"data", {8, 2, 6, 6}}, {"softmax_label", {8}}};
  std::map<std::string, NDArray> grads;
  for (const auto& [name, array] : net->args) {
    grads[name] = NDArray(runtime, array.shape());
    request.grad_req[name] = GradReq::kWrite;
  }
  const auto executor = Executor::Bind(runtime, symbol, request, net->args, grads, net->auxs);
  Numbers losses;
  for (int step = 0; step < steps; ++step) {
    const Arrays batch = net->Batch(step);
    executor->Step(batch);
    losses.push_back(LossOf(executor->outputs()[0], batch[1]));
    for (const auto& [name, gradient] : grads) net->Descend(name, gradient);
  }
  return losses;
}

Numbers LossesByAutograd(Runtime& runtime, ImageNet* net, int steps) {
  runtime.resources().NextCall();  // an executor counts its steps from 1
  Arrays attached;
  for (const auto& [name, array] : net->args) attached.push_back(array);
  const Variables variables(attached);
  Numbers losses;
  for (int step = 0; step < steps; ++step) {
    const Arrays batch = net->Batch(step);
    NDArray head;
    {
      const Recording recording;
      head =
          One("Convolution", {batch[0], net->args["conv_weight"], net->args["conv_bias"]}, kConv);
      head = Invoke("BatchNorm", Arrays{head, net->args["norm_gamma"], net->args["norm_beta"]},
                    kNorm, Arrays{net->auxs["norm_moving_mean"], net->auxs["norm_moving_var"]})[0];
      head = One("Activation", {head}, {{"act_type", "relu"}});
      head = One("Dropout", {head}, kDrop);
      head = One("FullyConnected", {head, net->args["fc_weight"], net->args["fc_bias"]}, kDense);
      head = One("SoftmaxOutput", {head, batch[1]});
    }
    Backward({head});
    losses.push_back(LossOf(head, batch[1]));
    for (const auto& [name, array] : net->args) net->Descend(name, GradientOf(array));
  }
  CHECK(autograd::CountsOf(runtime).bound == 1);
  return losses;
}

TEST_CASE("a net with BatchNorm and Dropout is trained as by an Executor") {
  constexpr int kSteps = 40;
  const auto one = NewRuntime(), other = NewRuntime();
  ImageNet by_executor(*one), by_autograd(*other);
  const Numbers wanted = LossesByExecutor(*one, &by_executor, kSteps);
  const Numbers found = LossesByAutograd(*other, &by_autograd, kSteps);
  for (int step = 0; step < kSteps; ++step) {
    CAPTURE(step);
    CHECK(found[static_cast<size_t>(step)] ==
          doctest::Approx(wanted[static_cast<size_t>(step)]).epsilon(1e-4));
  }
  CHECK(found.back() < 0.5 * found.front());
  // Both compute the gradients by the same program, hence the same bits.
  for (const auto& [name, array] : by_executor.args) {
    CAPTURE(name);
    CHECK(GetValues(array) == GetValues(by_autograd.args[name]));
  }
  for (const auto& [name, array] : by_executor.auxs) {
    CAPTURE(name);
    const Numbers a = GetValues(array), b = GetValues(by_autograd.auxs[name]);
    for (size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-4));
  }
}

}  // namespace
}  // namespace mxtrain::test
