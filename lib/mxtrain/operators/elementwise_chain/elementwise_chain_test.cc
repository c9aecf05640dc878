// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <tuple>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

OperatorCase ChainCase(const std::string& name, int args, const std::string& steps,
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
const TShape kChainShapes[] = {{7}, {2, 16, 4, 4}, {3, 5, 40, 41}, {2, 16, 64, 65}};

TEST_CASE("_ElementwiseChain: swish, which reads its argument twice") {
  const std::string steps =
      R"([{"op": "sigmoid", "params": {}, "in": [0]}, {"op": "elemwise_mul", "params": {}, "in": [0, 1]}])";
  for (const TShape& shape : kChainShapes) {
    OperatorCase c = ChainCase("swish " + shape.ToString(), 1, steps, shape);
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
    OperatorCase c = ChainCase("hard swish " + shape.ToString(), 1, steps, shape);
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
  OperatorCase c = ChainCase("three arguments", 3, steps, {3, 16, 3, 5});
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

// f(index in the whole shape, index in `part`, which is repeated over it) for every element.
template <typename F>
void ForRepeated(const TShape& whole, const TShape& part, const F& f) {
  for (int64_t index = 0; index < whole.Size(); ++index) {
    int64_t rest = index, at = 0, step = 1;
    for (int i = whole.ndim() - 1; i >= 0; --i) {
      at += rest % whole[i] % part[i] * step;
      rest /= whole[i];
      step *= part[i];
    }
    f(static_cast<size_t>(index), static_cast<size_t>(at));
  }
}
Values RepeatTo(const TShape& whole, const TShape& part, const Values& x) {
  Values out(static_cast<size_t>(whole.Size()));
  ForRepeated(whole, part, [&](size_t i, size_t at) { out[i] = x[at]; });
  return out;
}
Values SumTo(const TShape& whole, const TShape& part, const Values& x) {
  Values out(static_cast<size_t>(part.Size()));
  ForRepeated(whole, part, [&](size_t i, size_t at) { out[at] += x[i]; });
  return out;
}

TEST_CASE("_ElementwiseChain: a bias and a scale that are repeated, in every layout") {
  const std::string steps =
      R"([{"op": "broadcast_add", "params": {}, "in": [1, 0]}, {"op": "Activation", "params": {"act_type": "tanh"}, "in": [3]},
          {"op": "broadcast_mul", "params": {}, "in": [4, 2]}, {"op": "elemwise_add", "params": {}, "in": [5, 0]}])";
  // Repeated along the first axes, the last, both, all, one in the middle; more than a block.
  const std::tuple<TShape, TShape, TShape> shapes[] = {
      {{4, 7}, {1, 7}, {4, 1}},
      {{3, 5, 4}, {1, 1, 1}, {3, 1, 4}},
      {{2, 3, 4}, {1, 3, 1}, {2, 3, 4}},
      {{2, 16, 3, 5}, {1, 16, 1, 1}, {2, 1, 1, 1}},
      {{2, 16, 3, 5}, {2, 16, 1, 1}, {2, 16, 1, 5}},
      {{2, 11, 3, 5}, {1, 11, 1, 1}, {1, 11, 1, 1}},
      {{2, 11, 3, 5}, {1, 11, 3, 1}, {2, 1, 3, 5}},
      {{6, 16, 40, 41}, {1, 16, 1, 1}, {6, 1, 1, 1}},
      {{300, 151}, {1, 151}, {300, 1}}};
  for (const auto& [whole, bias, scale] : shapes) {
    OperatorCase c = ChainCase(
        format("{} {} {}", whole.ToString(), bias.ToString(), scale.ToString()), 3, steps, whole);
    c.shapes = {whole, bias, scale};
    c.inputs = {Uniform(-1.5, 1.5)};
    c.forward = [=, w = whole, b = bias, s = scale](const Arrays& in, const Arrays&) {
      const Values y = RepeatTo(w, b, in[1]), z = RepeatTo(w, s, in[2]);
      Values out = in[0];
      for (size_t i = 0; i < out.size(); ++i) out[i] += std::tanh(in[0][i] + y[i]) * z[i];
      return Arrays{out};
    };
    c.gradient = [=, w = whole, b = bias, s = scale](const Arrays& in, const Arrays&,
                                                     const Arrays& head) {
      const Values y = RepeatTo(w, b, in[1]), z = RepeatTo(w, s, in[2]);
      Values of_x = head[0], of_y = head[0], of_z = head[0];
      for (size_t i = 0; i < of_x.size(); ++i) {
        const double t = std::tanh(in[0][i] + y[i]);
        of_y[i] *= z[i] * (1 - t * t);
        of_x[i] += of_y[i];
        of_z[i] *= t;
      }
      return Arrays{of_x, SumTo(w, b, of_y), SumTo(w, s, of_z)};
    };
    c.tolerance = {whole.Size() > 1000 ? 8192.0 : 256.0, "sums of many rounded terms"};
    RunCase(c);
    if (whole.Size() > 1000) continue;
    c.types = {DType::kFloat16, DType::kBfloat16};
    c.tolerance = {256, "every step rounds to the type"};
    RunCase(c);
  }
}

Values MapRows(const Values& x, size_t length, const std::function<void(double*, size_t)>& f) {
  Values out = x;
  for (size_t at = 0; at < out.size(); at += length) f(out.data() + at, length);
  return out;
}

TEST_CASE("_ElementwiseChain: normalization of rows by their moments") {
  // (x - mean) / sqrt(mean of (x - mean)^2 + 0.5) * gamma + beta
  const std::string steps =
      R"([{"op": "mean", "params": {"axis": "AXES", "keepdims": "True"}, "in": [0]}, {"op": "broadcast_sub", "params": {}, "in": [0, 3]},
          {"op": "square", "params": {}, "in": [4]}, {"op": "mean", "params": {"axis": "AXES", "keepdims": "True"}, "in": [5]},
          {"op": "_plus_scalar", "params": {"scalar": "0.5"}, "in": [6]}, {"op": "rsqrt", "params": {}, "in": [7]},
          {"op": "broadcast_mul", "params": {}, "in": [4, 8]}, {"op": "broadcast_mul", "params": {}, "in": [9, 1]},
          {"op": "broadcast_add", "params": {}, "in": [10, 2]}])";
  const std::tuple<TShape, const char*, size_t> cases[] = {{{3, 7}, "(-1,)", 7},
                                                           {{2, 3, 4}, "(2,)", 4},
                                                           {{2, 3, 4}, "(1, 2)", 12},
                                                           {{40, 300}, "(1,)", 300},
                                                           {{13, 2000}, "(1,)", 2000}};
  for (const auto& [whole, axes, length] : cases) {
    std::string text = steps;
    for (size_t at; (at = text.find("AXES")) != std::string::npos;) text.replace(at, 4, axes);
    TShape vector = whole;
    vector[0] = 1;
    OperatorCase c = ChainCase(format("norm {} over {}", whole.ToString(), axes), 3, text, whole);
    c.shapes = {whole, vector, vector};
    c.inputs = {Uniform(-2, 2)};
    c.forward = [=, w = whole, n = length](const Arrays& in, const Arrays&) {
      Values y = MapRows(in[0], n, [](double* x, size_t count) {
        double mean = 0, square = 0;
        for (size_t i = 0; i < count; ++i) mean += x[i] / static_cast<double>(count);
        for (size_t i = 0; i < count; ++i)
          square += (x[i] - mean) * (x[i] - mean) / static_cast<double>(count);
        for (size_t i = 0; i < count; ++i) x[i] = (x[i] - mean) / std::sqrt(square + 0.5);
      });
      const Values gamma = RepeatTo(w, vector, in[1]), beta = RepeatTo(w, vector, in[2]);
      for (size_t i = 0; i < y.size(); ++i) y[i] = y[i] * gamma[i] + beta[i];
      return Arrays{y};
    };
    c.backward = whole.Size() < 1000;  // central differences of each element
    c.tolerance = {512, "a few sums"};
    RunCase(c);
  }
}

TEST_CASE("_ElementwiseChain: the largest element of a row, and a number for each row") {
  const std::string steps =
      R"([{"op": "broadcast_add", "params": {}, "in": [0, 1]}, {"op": "max", "params": {"axis": "-1", "keepdims": "True"}, "in": [3]},
          {"op": "elemwise_mul", "params": {}, "in": [4, 2]}, {"op": "broadcast_sub", "params": {}, "in": [3, 5]}])";
  for (const int64_t rows : {2, 9000}) {  // in one block, and in several
    const TShape whole = {rows, 3, 5}, mask = {1, 3, 5}, scale = {rows, 3, 1};
    OperatorCase c = ChainCase("largest", 3, steps, whole);
    c.backward = rows < 100;  // central differences of each element
    c.shapes = {whole, mask, scale};
    c.inputs = {Uniform(-2, 2)};
    c.forward = [=](const Arrays& in, const Arrays&) {
      const Values m = RepeatTo(whole, mask, in[1]), s = RepeatTo(whole, scale, in[2]);
      Values x = in[0];
      for (size_t i = 0; i < x.size(); ++i) x[i] += m[i];
      const Values most = MapRows(x, 5, [](double* row, size_t n) {
        std::fill_n(row, n, *std::max_element(row, row + n));
      });
      for (size_t i = 0; i < x.size(); ++i) x[i] -= most[i] * s[i];
      return Arrays{x};
    };
    c.tolerance = {256, "a few operations and sums of five terms"};
    RunCase(c);
  }
}

TEST_CASE("_ElementwiseChain: a Dropout multiplies by zero or by the reciprocal of its rate") {
  OperatorCase c = ChainCase(
      "dropout", 2,
      R"([{"op": "_mul_scalar", "params": {"scalar": "2"}, "in": [0]}, {"op": "Dropout", "params": {"p": "0.25"}, "in": [2]},
          {"op": "elemwise_add", "params": {}, "in": [3, 1]}])",
      {40, 16, 3, 5});
  c.types = {DType::kFloat32, DType::kFloat64, DType::kBfloat16};
  c.inputs = {Uniform(1, 2)};
  c.check = [](const CaseResult& r) {
    std::vector<std::string> problems;
    const auto say = [&](const char* what, size_t i) {
      problems.push_back(format("{} {}", what, i));
    };
    const double error = r.type == DType::kBfloat16 ? 0.05 : 1e-5;
    size_t dropped = 0;
    for (size_t i = 0; i < r.out[0].size(); ++i) {
      const double factor = (r.out[0][i] - r.in[1][i]) / (2 * r.in[0][i]);
      const bool drops = std::abs(factor) < 0.3;
      dropped += drops;
      if (std::abs(factor - (drops ? 0 : 4.0 / 3)) > error) say("factor of element", i);
      if (r.in_grad.empty() || r.in_grad[0].empty()) continue;
      if (std::abs(r.in_grad[0][i] - (drops ? 0 : 8.0 / 3 * r.head[0][i])) > error * 4)
        say("gradient of element", i);
      if (r.in_grad[1].empty() || r.in_grad[1][i] == r.head[0][i]) continue;
      say("gradient of what is added to element", i);
    }
    const double n = static_cast<double>(r.out[0].size()),
                 share = static_cast<double>(dropped) / static_cast<double>(r.out[0].size());
    if (std::abs(share - 0.25) > 5 * std::sqrt(0.25 * 0.75 / n)) say("dropped:", dropped);
    return problems;
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
  const std::string loses_axes = R"([{"op": "sum", "params": {"axis": "1"}, "in": [0]}])";
  CHECK_THROWS_WITH(make(loses_axes), "_ElementwiseChain: sum cannot be step 0");
  const std::string twice =
      R"([{"op": "Dropout", "params": {}, "in": [0]}, {"op": "Dropout", "params": {}, "in": [1]}])";
  CHECK_THROWS_WITH(make(twice), "_ElementwiseChain: Dropout cannot be step 1");
  CHECK_THROWS_WITH(make(early), "_ElementwiseChain: sigmoid cannot be step 0");
  CHECK_THROWS_AS(make("{"), Error);
}

// Found by fuzzing: the conversion of 1e20 to an index is not defined, and 2^32 would be index 0.
TEST_CASE("_ElementwiseChain: steps that read values which there are not are refused") {
  for (const char* in : {"[1]", "[-1]", "[4294967296]", "[99999999999999999993]", "[1e20]", "[0.5]",
                         "[\"0\"]", "0"}) {
    CAPTURE(in);
    const std::string steps = format(R"([{{"op": "square", "params": {{}}, "in": {}}}])", in);
    CHECK_THROWS_WITH_AS(
        TestRegistry().Create("_ElementwiseChain", {{"num_args", "1"}, {"steps", steps}}),
        "_ElementwiseChain: square cannot be step 0", Error);
  }
}

}  // namespace
}  // namespace mxtrain::test
