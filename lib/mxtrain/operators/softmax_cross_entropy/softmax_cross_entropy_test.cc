// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

TEST_CASE("softmax_cross_entropy") {
  OperatorCase c;
  c.name = c.op = "softmax_cross_entropy";
  c.shapes = {TShape{5, 7}, TShape{5}};
  c.inputs = {Uniform(-2, 2), Labels(7)};
  c.forward = [](const Arrays& in, const Arrays&) {
    double loss = 0;
    for (int i = 0; i < 5; ++i) {
      double sum = 0;
      for (int j = 0; j < 7; ++j) sum += std::exp(in[0][i * 7 + j]);
      loss += std::log(sum) - in[0][i * 7 + static_cast<int>(std::lround(in[1][i]))];
    }
    return Arrays{{loss}};
  };
  c.types = kAllFloatingTypes;
  c.tolerance = {32, "sums in double, one rounding"};
  c.must_accept = {"simple"};
  RunCase(c);
}

TEST_CASE("softmax_cross_entropy: mismatched shapes") {
  const auto op = TestRegistry().Create("softmax_cross_entropy", {});
  std::vector<TShape> in = {TShape{5, 7}, TShape{4}}, out(1), aux;
  CHECK_THROWS_WITH(op->InferShape(&in, &out, &aux), doctest::Contains("are [5, 7] and [4]"));
  CHECK(op->ListArguments() == std::vector<std::string>{"data", "label"});
}

}  // namespace
}  // namespace mxtrain::test
