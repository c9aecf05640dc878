// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

// gamma and beta have `scales` elements: one per group, or per channel.
OperatorCase GroupNormCase(const TShape& shape, int64_t groups, int64_t scales, bool statistics) {
  OperatorCase c;
  c.op = "GroupNorm";
  c.name = format("GroupNorm {}, {} groups, gamma of {}", shape.ToString(), groups, scales);
  c.kwargs = {{"num_groups", std::to_string(groups)},
              {"output_mean_var", statistics ? "True" : "False"}};
  c.shapes = {shape, TShape{scales}, TShape{scales}};
  c.inputs = {Uniform(-2, 2)};
  c.forward = [=](const Arrays& in, const Arrays&) {
    const int64_t places = shape.Product(2, shape.ndim()), per_group = shape[1] / groups,
                  length = per_group * places;
    Values y(in[0].size()), means, deviations;
    for (int64_t row = 0; row < shape[0] * groups; ++row) {
      double mean = 0, variance = 0;
      for (int64_t k = 0; k < length; ++k) mean += in[0][row * length + k];
      mean /= static_cast<double>(std::max<int64_t>(length, 1));
      for (int64_t k = 0; k < length; ++k)
        variance += std::pow(in[0][row * length + k] - mean, 2) / static_cast<double>(length);
      const double deviation = std::sqrt(variance + 1e-5);
      for (int64_t k = 0; k < length; ++k) {
        const int64_t group = row % groups, channel = group * per_group + k / places;
        const int64_t scale = scales == groups ? group : channel;
        y[row * length + k] =
            in[1][scale] * (in[0][row * length + k] - mean) / deviation + in[2][scale];
      }
      means.push_back(mean);
      deviations.push_back(deviation);
    }
    return Arrays{y, means, deviations};
  };
  c.tolerance = {64, "a variance and a division"};
  return c;
}

TEST_CASE("GroupNorm by its definition, with statistics") {
  RunCase(GroupNormCase({2, 6, 3, 5}, 3, 3, true));
  RunCase(GroupNormCase({2, 6, 3, 5}, 2, 6, true));
  RunCase(GroupNormCase({3, 4, 7}, 4, 4, true));
  RunCase(GroupNormCase({2, 4, 2, 2, 3}, 1, 1, true));
  RunCase(GroupNormCase({1, 2, 1, 1, 2, 1, 3, 1}, 2, 2, true));
  OperatorCase c = GroupNormCase({2, 6, 3, 5}, 2, 6, true);
  c.backward = false;
  c.must_accept = {"simd"};
  RunCase(c);
}

TEST_CASE("GroupNorm by its definition") {
  RunCase(GroupNormCase({2, 4, 0, 5}, 2, 2, false));
  RunCase(GroupNormCase({0, 4, 3}, 2, 4, false));
  RunCase(GroupNormCase({2, 4, 3}, 2, 4, false));  // channels shorter than a vector
  const auto run = [](const TShape& shape, int64_t groups, int64_t scales) {
    OperatorCase c = GroupNormCase(shape, groups, scales, false);
    c.must_accept = {"simd"};
    RunCase(c);
    if (c.shapes[0].Size() > 1000) return;  // sums of many rounded numbers
    // The kernel computes in float32 and rounds once; the graph rounds the normalized array, whose
    // gradients are sums of up to 60 products.
    c.lowered_epsilons = 8;
    for (const DType type : {DType::kFloat16, DType::kBfloat16}) {
      c.types = {type};
      CHECK(KernelRan(RunCase(c), "simd"));
    }
  };
  run({2, 6, 3, 5}, 3, 3);
  run({2, 6, 3, 5}, 3, 6);
  run({3, 4, 16}, 2, 4);
  run({3, 4, 7}, 4, 4);
  run({1, 2, 2101}, 1, 2);  // longer than a block of sums
}

TEST_CASE("GroupNorm says what does not fit") {
  std::vector<TShape> in = {TShape{2, 6, 3}, TShape(), TShape()}, out(3), aux;
  CHECK_THROWS_WITH(
      TestRegistry().Create("GroupNorm", {{"num_groups", "4"}})->InferShape(&in, &out, &aux),
      doctest::Contains("6 channels cannot be divided into num_groups = 4 groups"));
  const auto norm = TestRegistry().Create("GroupNorm", {{"num_groups", "2"}});
  CHECK(norm->NumVisibleOutputs() == 1);
  CHECK(norm->InferShape(&in, &out, &aux));
  CHECK(in[1] == TShape{2});
  CHECK(out[1] == TShape{2, 2});
}

}  // namespace
}  // namespace mxtrain::test
