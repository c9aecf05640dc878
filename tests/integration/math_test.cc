// SPDX-License-Identifier: Apache-2.0
// train.math: the accuracy of `fast`, and that `exact` uses another kernel if the machine has a
// fast one.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "tests/support/operator_case.h"
#include "tests/support/small_nets.h"

namespace mxtrain::test {
namespace {

constexpr int64_t kMathBatch = 4, kSize = 32, kChannels = 64;

size_t At(int64_t n, int64_t c, int64_t y, int64_t x) {
  return static_cast<size_t>(((n * kChannels + c) * kSize + y) * kSize + x);
}

// The gradient of weight (o, c, i, j) of a 3x3 convolution with padding 1.
double WeightGradient(const std::vector<double>& data, const std::vector<double>& head, int64_t o,
                      int64_t c, int64_t i, int64_t j) {
  double sum = 0;
  for (int64_t n = 0; n < kMathBatch; ++n) {
    for (int64_t y = std::max<int64_t>(0, 1 - i); y < std::min(kSize, kSize + 1 - i); ++y) {
      for (int64_t x = std::max<int64_t>(0, 1 - j); x < std::min(kSize, kSize + 1 - j); ++x) {
        sum += head[At(n, o, y, x)] * data[At(n, c, y + i - 1, x + j - 1)];
      }
    }
  }
  return sum;
}

// Output (n, o, y, x); `turned`: the gradient of the data there, with `values` the head gradient.
double Correlation(const std::vector<double>& values, const std::vector<double>& weight,
                   bool turned, int64_t at) {
  const int64_t x = at % kSize, y = at / kSize % kSize, o = at / (kSize * kSize) % kChannels,
                n = at / (kSize * kSize * kChannels);
  double sum = 0;
  for (int64_t c = 0; c < kChannels; ++c) {
    for (int64_t i = 0; i < 3; ++i) {
      for (int64_t j = 0; j < 3; ++j) {
        const int64_t sy = turned ? y + 1 - i : y + i - 1, sx = turned ? x + 1 - j : x + j - 1;
        if (sy < 0 || sx < 0 || sy >= kSize || sx >= kSize) continue;
        const int64_t w = ((turned ? c * kChannels + o : o * kChannels + c) * 3 + i) * 3 + j;
        sum += values[static_cast<size_t>(((n * kChannels + c) * kSize + sy) * kSize + sx)] *
               weight[static_cast<size_t>(w)];
      }
    }
  }
  return sum;
}

struct Errors {
  double output = 0, data = 0, weight = 0;  // root mean square over a sample
};

// Of a 3x3 convolution with padding 1 against sums in double.
Errors ErrorsOf(Math math) {
  const auto runtime = NewRuntime("naive", 2);
  const Symbol net = Symbol::Create(
      TestRegistry(), "Convolution", "conv",
      {{"kernel", "(3, 3)"}, {"pad", "(1, 1)"}, {"num_filter", "64"}, {"no_bias", "True"}},
      std::vector<Symbol>{Symbol::Variable("data")});
  const TShape shape{kMathBatch, kChannels, kSize, kSize};
  const auto array = [&](const std::string& name) {
    NDArray a(*runtime, shape, DType::kFloat32);
    SetValues(a, ValuesFor(name, shape.Size()));
    return a;
  };
  executor::BindRequest request;
  request.shapes["data"] = shape;
  request.types["data"] = DType::kFloat32;
  request.grad_req["data"] = request.grad_req["conv_weight"] = executor::GradReq::kWrite;
  request.math = math;
  const auto executor = BindWithValues(*runtime, net, request);
  const std::vector<NDArray> heads{array("head")};
  executor->Forward({});
  executor->Backward(heads);

  const std::vector<double> data = GetValues(executor->arg("data")),
                            weight = GetValues(executor->arg("conv_weight")),
                            head = GetValues(heads[0]);
  const auto error = [](const NDArray& found, int64_t step,
                        const std::function<double(int64_t)>& expected) {
    const std::vector<double> values = GetValues(found);
    double squares = 0;
    int64_t count = 0;
    for (int64_t k = 0; k < static_cast<int64_t>(values.size()); k += step, ++count)
      squares += std::pow(values[static_cast<size_t>(k)] - expected(k), 2);
    return std::sqrt(squares / static_cast<double>(count));
  };
  Errors errors;
  errors.output = error(executor->outputs()[0], 61,
                        [&](int64_t k) { return Correlation(data, weight, false, k); });
  errors.data = error(executor->grad("data"), 61,
                      [&](int64_t k) { return Correlation(head, weight, true, k); });
  errors.weight = error(executor->grad("conv_weight"), 61, [&](int64_t k) {
    return WeightGradient(data, head, k / (9 * kChannels), k / 9 % kChannels, k % 9 / 3, k % 3);
  });
  return errors;
}

TEST_CASE("fast convolutions round at most four times as much as exact ones") {
  const Errors exact = ErrorsOf(Math::kExact), fast = ErrorsOf(Math::kFast);
  CHECK(exact.output > 0);
  CHECK(fast.output <= 4 * exact.output);
  CHECK(fast.data <= 4 * exact.data);
  CHECK(fast.weight <= 4 * exact.weight);
}

TEST_CASE(
    "evaluation repacks the weights of a fast convolution when they have changed, and leaves the "
    "parameter as it is") {
  const auto runtime = NewRuntime("naive", 2);
  const Symbol net = Symbol::Create(
      TestRegistry(), "Convolution", "conv",
      {{"kernel", "(3, 3)"}, {"pad", "(1, 1)"}, {"num_filter", "64"}, {"no_bias", "True"}},
      std::vector<Symbol>{Symbol::Variable("data")});
  executor::BindRequest request;
  request.shapes["data"] = {kMathBatch, kChannels, kSize, kSize};
  request.types["data"] = DType::kFloat32;
  request.is_train = false;
  const auto executor = BindWithValues(*runtime, net, request);
  const std::vector<double> data = GetValues(executor->arg("data"));
  for (double factor : {1.0, -2.0}) {
    std::vector<double> weight = GetValues(executor->arg("conv_weight"));
    for (double& w : weight) w *= factor;
    SetValues(executor->arg("conv_weight"), weight);
    executor->Forward({});
    const std::vector<double> out = GetValues(executor->outputs()[0]);
    for (int64_t k = 0; k < static_cast<int64_t>(out.size()); k += 1009) {
      CHECK(out[static_cast<size_t>(k)] ==
            doctest::Approx(Correlation(data, weight, false, k)).epsilon(1e-3));
    }
    CHECK(GetValues(executor->arg("conv_weight")) == weight);
  }
}

}  // namespace
}  // namespace mxtrain::test
