// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

constexpr int64_t kDraws = 40000;

// Fraction of the draws below `bound`.
double Below(const Values& draws, double bound) {
  return static_cast<double>(
             std::count_if(draws.begin(), draws.end(), [=](double x) { return x < bound; })) /
         static_cast<double>(draws.size());
}

// The distribution function at several points, within five standard errors of a binomial fraction.
std::vector<std::string> CompareDistribution(const Values& draws,
                                             const std::function<double(double)>& cdf, double low,
                                             double high) {
  std::vector<std::string> problems;
  for (int i = 1; i < 10; ++i) {
    const double bound = low + (high - low) * i / 10, expected = cdf(bound);
    const double error = 5 * std::sqrt(expected * (1 - expected) / kDraws);
    if (std::fabs(Below(draws, bound) - expected) > error) {
      problems.push_back(format("{} of the draws are below {}, expected {}", Below(draws, bound),
                                bound, expected));
    }
  }
  return problems;
}

OperatorCase MakeCase(const std::string& op, Kwargs kwargs,
                      const std::function<double(double)>& cdf, double low, double high) {
  OperatorCase c;
  c.name = c.op = op;
  c.kwargs = std::move(kwargs);
  c.kwargs.emplace_back("shape", "(200, 200)");
  c.check = [=](const CaseResult& result) {
    return CompareDistribution(result.out[0], cdf, low, high);
  };
  c.backward = false;
  c.types = {DType::kFloat32};
  c.tolerance = {4, "a multiplication and an addition"};
  return c;
}

TEST_CASE("uniform and normal draws follow their distributions") {
  RunCase(MakeCase(
      "_random_uniform", {{"low", "-1"}, {"high", "3"}}, [](double x) { return (x + 1) / 4; }, -1,
      3));
  RunCase(MakeCase(
      "_random_normal", {{"loc", "2"}, {"scale", "0.5"}},
      [](double x) { return std::erfc(-(x - 2) / 0.5 / std::sqrt(2.0)) / 2; }, 0.5, 3.5));
}

TEST_CASE("type and shape come from the parameters or from the output") {
  const auto op = TestRegistry().Create("uniform", {});
  std::vector<TShape> in, out(1), aux;
  CHECK_FALSE(op->InferShape(&in, &out, &aux));
  out[0] = TShape{2, 3};
  CHECK(op->InferShape(&in, &out, &aux));
  std::vector<DType> in_type, out_type = {DType::kUnknown}, aux_type;
  CHECK(op->InferType(&in_type, &out_type, &aux_type));
  CHECK(out_type[0] == DType::kFloat32);
  const auto typed = TestRegistry().Create("normal", {{"dtype", "float64"}, {"shape", "(4,)"}});
  CHECK_THROWS_AS(typed->InferType(&in_type, &out_type, &aux_type), Error);
  CHECK_THROWS_AS(typed->InferShape(&in, &out, &aux), Error);
}

}  // namespace
}  // namespace mxtrain::test
