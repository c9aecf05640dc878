// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

TEST_CASE("InstanceNorm by its definition") {
  for (const TShape& shape :
       {TShape{2, 3, 4, 5}, TShape{3, 2, 7}, TShape{1, 1, 1, 6, 2}, TShape{2, 0, 3}}) {
    OperatorCase c;
    c.op = "InstanceNorm";
    c.name = "InstanceNorm " + shape.ToString();
    c.kwargs = {{"eps", "0.01"}};
    c.shapes = {shape, TShape{shape[1]}, TShape{shape[1]}};
    c.inputs = {Uniform(-2, 2)};
    c.forward = [shape](const Arrays& in, const Arrays&) {
      const size_t channels = static_cast<size_t>(shape[1]),
                   places = static_cast<size_t>(shape.Product(2, shape.ndim()));
      Values y(in[0].size());
      for (size_t row = 0; row < y.size() / places; ++row) {
        double mean = 0, variance = 0;
        for (size_t k = 0; k < places; ++k) mean += in[0][row * places + k];
        mean /= static_cast<double>(places);
        for (size_t k = 0; k < places; ++k)
          variance += std::pow(in[0][row * places + k] - mean, 2) / static_cast<double>(places);
        for (size_t k = 0; k < places; ++k) {
          y[row * places + k] = in[1][row % channels] * (in[0][row * places + k] - mean) /
                                    std::sqrt(variance + 0.01) +
                                in[2][row % channels];
        }
      }
      return Arrays{y};
    };
    c.tolerance = {64, "a variance and a division"};
    if (shape.Size() > 0) c.must_accept = {"simd"};
    RunCase(c);
    c.types = {DType::kFloat16, DType::kBfloat16};
    // The kernel computes in float32 and rounds once; the graph rounds the normalized array, whose
    // gradients are sums of up to 60 products.
    c.lowered_epsilons = 8;
    RunCase(c);
  }
}

TEST_CASE("InstanceNorm needs places, and knows the shape of gamma") {
  const auto norm = TestRegistry().Create("InstanceNorm", {});
  std::vector<TShape> in = {TShape{2, 3}, TShape(), TShape()}, out(1), aux;
  CHECK_THROWS_WITH(norm->InferShape(&in, &out, &aux), doctest::Contains("3 axes or more"));
  in = {TShape{2, 3, 4}, TShape(), TShape()};
  CHECK(norm->InferShape(&in, &out, &aux));
  CHECK(in[1] == TShape{3});
  CHECK(out[0] == TShape{2, 3, 4});
  in = {TShape{2, 3, 4}, TShape{4}, TShape()};
  CHECK_THROWS_WITH(norm->InferShape(&in, &out, &aux), doctest::Contains("gamma"));
}

}  // namespace
}  // namespace mxtrain::test
