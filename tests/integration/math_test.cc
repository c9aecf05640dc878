// train.math: what `fast` may cost in accuracy, and that `exact` is another kernel where the machine has a fast one.
#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/operator_case.h"
#include "tests/support/small_nets.h"

namespace mxtrain::test {
namespace {

constexpr int64_t kBatch = 4, kSize = 32, kChannels = 64;

// The gradient of weight (o, c, i, j) of a 3x3 convolution with padding 1.
double WeightGradient(const std::vector<double>& data, const std::vector<double>& head, int64_t o, int64_t c, int64_t i, int64_t j) {
  double sum = 0;
  for (int64_t n = 0; n < kBatch; ++n) {
    for (int64_t y = std::max<int64_t>(0, 1 - i); y < std::min(kSize, kSize + 1 - i); ++y) {
      for (int64_t x = std::max<int64_t>(0, 1 - j); x < std::min(kSize, kSize + 1 - j); ++x) {
        const auto at = [](int64_t n, int64_t c, int64_t y, int64_t x) { return static_cast<size_t>(((n * kChannels + c) * kSize + y) * kSize + x); };
        sum += head[at(n, o, y, x)] * data[at(n, c, y + i - 1, x + j - 1)];
      }
    }
  }
  return sum;
}

TEST_CASE("fast gradients of convolution weights round at most four times as much as exact ones") {
  const auto runtime = NewRuntime("naive", 2);
  const Symbol net = Symbol::Create(TestRegistry(), "Convolution", "conv",
                                    {{"kernel", "(3, 3)"}, {"pad", "(1, 1)"}, {"num_filter", "64"}, {"no_bias", "True"}},
                                    std::vector<Symbol>{Symbol::Variable("data")});
  const TShape shape{kBatch, kChannels, kSize, kSize};
  const std::vector<double> data = ValuesFor("data", shape.Size()), head = ValuesFor("head", shape.Size());
  const auto array = [&](const std::vector<double>& values) {
    NDArray a(*runtime, shape, DType::kFloat32);
    SetValues(a, values);
    return a;
  };
  const std::vector<double> rounded_data = GetValues(array(data)), rounded_head = GetValues(array(head));
  const auto error = [&](Math math) {
    executor::BindRequest request;
    request.inputs = {"data"};
    request.shapes["data"] = shape;
    request.types["data"] = DType::kFloat32;
    request.grad_req["conv_weight"] = executor::GradReq::kWrite;
    request.math = math;
    const auto executor = BindWithValues(*runtime, net, request);
    const std::vector<NDArray> inputs{array(data)}, heads{array(head)};
    executor->Forward(inputs);
    executor->Backward(heads);
    const std::vector<double> gradient = GetValues(executor->grad("conv_weight"));
    double squares = 0;
    for (int64_t k = 0; k < kChannels * kChannels * 9; k += 61) {
      const double expected = WeightGradient(rounded_data, rounded_head, k / (9 * kChannels), k / 9 % kChannels, k % 9 / 3, k % 3);
      squares += std::pow(gradient[static_cast<size_t>(k)] - expected, 2);
    }
    return std::sqrt(squares);
  };
  const double exact = error(Math::kExact), fast = error(Math::kFast);
  CHECK(exact > 0);
  CHECK(fast <= 4 * exact);
}

}  // namespace
}  // namespace mxtrain::test
