// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

OperatorCase CaseOf(const std::string& name, int args, const std::string& steps,
                    const TShape& shape) {
  OperatorCase c;
  c.name = "chain, " + name;
  c.op = "_ElementwiseChain";
  c.kwargs = {{"num_args", std::to_string(args)}, {"steps", steps}};
  c.shapes.assign(static_cast<size_t>(args), shape);
  c.inputs = {UniformAwayFrom(-4, 4, {-3, 0, 3})};
  c.types = {DType::kFloat32, DType::kFloat64};
  c.tolerance = {64, "some elementary functions in a row"};
  return c;
}

double Sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

// Less than a block, whole blocks, blocks and a remainder, and enough for several threads.
const TShape kShapes[] = {{7}, {2, 16, 4, 4}, {3, 5, 40, 41}, {2, 16, 64, 65}};

TEST_CASE("_ElementwiseChain: swish, which reads its argument twice") {
  const std::string steps =
      R"([{"op": "sigmoid", "params": {}, "in": [0]}, {"op": "elemwise_mul", "params": {}, "in": [0, 1]}])";
  for (const TShape& shape : kShapes) {
    OperatorCase c = CaseOf("swish " + shape.ToString(), 1, steps, shape);
    c.forward = [](const Arrays& in, const Arrays&) {
      return Arrays{Apply(in[0], [](double x) { return x * Sigmoid(x); })};
    };
    if (shape.Size() > 1000) {
      c.gradient = [](const Arrays& in, const Arrays&, const Arrays& head) {
        const auto slope = [](double x) { return Sigmoid(x) * (1 + x * (1 - Sigmoid(x))); };
        return Arrays{
            Apply(head[0], Apply(in[0], slope), [](double g, double s) { return g * s; })};
      };
    }
    RunCase(c);
    c.types = {DType::kFloat16, DType::kBfloat16};
    c.tolerance.epsilons = 8;  // intermediate values are rounded too
    c.tolerance.reason = "every step rounds to the type";
    RunCase(c);
  }
}

TEST_CASE("_ElementwiseChain: hard swish with numbers") {
  const std::string steps =
      R"([{"op": "_plus_scalar", "params": {"scalar": "3"}, "in": [0]}, {"op": "clip", "params": {"a_min": "0", "a_max": "6"}, "in": [1]},
          {"op": "elemwise_mul", "params": {}, "in": [0, 2]}, {"op": "_div_scalar", "params": {"scalar": "6"}, "in": [3]}])";
  for (const TShape& shape : {TShape{7}, TShape{3, 5, 4, 3}, TShape{0, 3}}) {
    OperatorCase c = CaseOf("hard swish " + shape.ToString(), 1, steps, shape);
    c.forward = [](const Arrays& in, const Arrays&) {
      return Arrays{Apply(in[0], [](double x) { return x * std::clamp(x + 3, 0.0, 6.0) / 6; })};
    };
    RunCase(c);
  }
}

TEST_CASE("_ElementwiseChain: several arguments, sums, and a value that two steps read") {
  const std::string steps =
      R"([{"op": "ElementWiseSum", "params": {"num_args": "3"}, "in": [0, 1, 2]}, {"op": "Activation", "params": {"act_type": "tanh"}, "in": [3]},
          {"op": "square", "params": {}, "in": [4]}, {"op": "elemwise_sub", "params": {}, "in": [4, 5]}, {"op": "elemwise_mul", "params": {}, "in": [6, 1]}])";
  OperatorCase c = CaseOf("three arguments", 3, steps, {3, 16, 3, 5});
  c.forward = [](const Arrays& in, const Arrays&) {
    Values out = in[0];
    for (size_t i = 0; i < out.size(); ++i) {
      const double t = std::tanh(in[0][i] + in[1][i] + in[2][i]);
      out[i] = (t - t * t) * in[1][i];
    }
    return Arrays{out};
  };
  RunCase(c);
}

TEST_CASE("_ElementwiseChain: invalid steps are rejected") {
  const auto make = [](const std::string& steps) {
    return TestRegistry().Create("_ElementwiseChain", {{"num_args", "1"}, {"steps", steps}});
  };
  CHECK_THROWS_WITH(make("[]"), "_ElementwiseChain has no steps");
  const std::string moves = R"([{"op": "transpose", "params": {}, "in": [0]}])",
                    early = R"([{"op": "sigmoid", "params": {}, "in": [1]}])";
  CHECK_THROWS_WITH(make(moves), "_ElementwiseChain: transpose cannot be step 0");
  CHECK_THROWS_WITH(make(early), "_ElementwiseChain: sigmoid cannot be step 0");
  CHECK_THROWS_AS(make("{"), Error);
}

}  // namespace
}  // namespace mxtrain::test
