// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

const Values kRows = {0.1, 0.2, 0.3, 0.4, 0.5, 0, 0.5, 0, 0, 0, 0, 1};  // three of four classes

OperatorCase MultinomialCase(const std::string& shape, bool get_prob) {
  OperatorCase c;
  c.name = "_sample_multinomial, shape " + shape + (get_prob ? ", probabilities" : "");
  c.op = "_sample_multinomial";
  c.kwargs = {{"shape", shape}, {"get_prob", get_prob ? "True" : "False"}};
  c.shapes = {{3, 4}};
  c.inputs = {Cycle(kRows)};
  c.types = {DType::kFloat32};
  c.tolerance = {16, "a logarithm"};
  return c;
}

// Counts of each class within five standard errors, and no class without a probability.
std::vector<std::string> CheckCounts(const CaseResult& result) {
  std::vector<std::string> problems;
  const size_t each = result.out[0].size() / 3;
  for (size_t row = 0; row < 3; ++row) {
    Values counts(4);
    for (size_t i = row * each; i < (row + 1) * each; ++i)
      ++counts.at(static_cast<size_t>(result.out[0][i]));
    for (size_t k = 0; k < 4; ++k) {
      const double n = static_cast<double>(each), p = result.in[0][row * 4 + k];
      if (std::abs(counts[k] - n * p) > 5 * std::sqrt(n * p * (1 - p)) + 1e-9)
        problems.push_back(format("row {}: {} of class {}, expected {}", row, counts[k], k, n * p));
    }
  }
  return problems;
}

TEST_CASE("_sample_multinomial draws classes by their probabilities") {
  OperatorCase c = MultinomialCase("(100, 100)", false);
  c.check = CheckCounts;
  c.backward = false;
  RunCase(c);
}

TEST_CASE("_sample_multinomial: logarithms, and their gradient by its definition") {
  OperatorCase c = MultinomialCase("(50,)", true);
  c.check = [](const CaseResult& result) {
    std::vector<std::string> problems = CheckCounts(result);
    Values gradient(12);
    for (size_t i = 0; i < result.out[0].size(); ++i) {
      const size_t at = i / 50 * 4 + static_cast<size_t>(result.out[0][i]);
      const double p = result.in[0][at];
      if (std::abs(result.out[1][i] - std::log(p)) > 1e-6)
        problems.push_back(
            format("draw {}: log p {}, expected {}", i, result.out[1][i], std::log(p)));
      gradient[at] += result.head[1][i] / p;
    }
    for (size_t k = 0; k < gradient.size() && !result.in_grad.empty(); ++k) {
      if (std::abs(result.in_grad[0][k] - gradient[k]) > 1e-4 * (1 + std::abs(gradient[k])))
        problems.push_back(
            format("gradient {}: {}, expected {}", k, result.in_grad[0][k], gradient[k]));
    }
    return problems;
  };
  RunCase(c);
}

TEST_CASE("_sample_multinomial: shapes and types") {
  const auto infer = [](const Kwargs& kwargs, const TShape& data, size_t outputs) {
    std::vector<TShape> in{data}, out(outputs), aux;
    CHECK(TestRegistry().Create("sample_multinomial", kwargs)->InferShape(&in, &out, &aux));
    return out.back();
  };
  CHECK(infer({}, {5}, 1) == TShape{1});
  CHECK(infer({{"shape", "(7,)"}}, {5}, 1) == TShape{7});
  CHECK(infer({}, {2, 3, 5}, 1) == TShape{2, 3});
  CHECK(infer({{"shape", "(7, 8)"}, {"get_prob", "True"}}, {2, 5}, 2) == TShape{2, 7, 8});
  const auto op = TestRegistry().Create("_sample_multinomial", {{"get_prob", "True"}});
  CHECK(op->ListOutputs().size() == 2);
  CHECK(op->HasGradient(0));
  std::vector<DType> in{DType::kFloat64}, out(2, DType::kUnknown), aux;
  CHECK(op->InferType(&in, &out, &aux));
  CHECK(out == std::vector<DType>{DType::kInt32, DType::kFloat64});
  std::vector<TShape> shapes{TShape{3, 0}}, out_shapes(2), no_shapes;
  CHECK_THROWS_WITH_AS(op->InferShape(&shapes, &out_shapes, &no_shapes),
                       doctest::Contains("rows of probabilities"), Error);
  CHECK(infer({{"dtype", "uint8"}}, {2, 256}, 1) == TShape{2});
  CHECK(infer({{"dtype", "float16"}}, {2, 2049}, 1) == TShape{2});
  for (const auto& [type, classes] : {std::pair<const char*, int64_t>{"uint8", 257},
                                      {"bfloat16", 258},
                                      {"float16", 2050},
                                      {"float32", (int64_t{1} << 24) + 2}}) {
    shapes = {{2, classes}};
    CHECK_THROWS_WITH_AS(
        TestRegistry()
            .Create("_sample_multinomial", {{"dtype", type}})
            ->InferShape(&shapes, &out_shapes, &no_shapes),
        format("_sample_multinomial: dtype = {} cannot hold {} classes; use int32", type, classes)
            .c_str(),
        Error);
  }
}

}  // namespace
}  // namespace mxtrain::test
