// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <tuple>

#include "mxtrain/operators/random_sample/distributions.h"
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

OperatorCase RandomSampleCase(const std::string& op, Kwargs kwargs,
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
  RunCase(RandomSampleCase(
      "_random_uniform", {{"low", "-1"}, {"high", "3"}}, [](double x) { return (x + 1) / 4; }, -1,
      3));
  RunCase(RandomSampleCase(
      "_random_normal", {{"loc", "2"}, {"scale", "0.5"}},
      [](double x) { return std::erfc(-(x - 2) / 0.5 / std::sqrt(2.0)) / 2; }, 0.5, 3.5));
}

using Cdf = std::function<double(double)>;

// The largest difference between the distribution function of the draws and `cdf`. For integers the
// function is compared at each of them, for other numbers on both sides of each draw.
double Distance(Values draws, const Cdf& cdf, bool integers) {
  std::sort(draws.begin(), draws.end());
  const double n = static_cast<double>(draws.size());
  double distance = 0;
  for (size_t i = 0; i < draws.size(); ++i) {
    const bool last = i + 1 == draws.size() || draws[i + 1] != draws[i];
    if (integers && !last) continue;
    const double at = cdf(draws[i]);
    distance = std::max(distance, std::abs(at - static_cast<double>(i + 1) / n));
    if (!integers) distance = std::max(distance, std::abs(at - static_cast<double>(i) / n));
  }
  return distance;
}

struct Law {
  Cdf cdf;
  double mean, variance, fourth;  // the last one: the fourth central moment
  bool integers = false;
};

// Kolmogorov and Smirnov's distance exceeds 2 / sqrt(n) once in 1500 samples (for integers less
// often), moments five standard errors never in practice. The seeds are fixed.
std::vector<std::string> Compare(const Values& draws, const Law& expected) {
  std::vector<std::string> problems;
  const double n = static_cast<double>(draws.size());
  double mean = 0, variance = 0;
  for (double x : draws) mean += x / n;
  for (double x : draws) variance += std::pow(x - expected.mean, 2) / n;
  const double mean_error = std::sqrt(expected.variance / n),
               variance_error = std::sqrt((expected.fourth - std::pow(expected.variance, 2)) / n);
  if (!(std::abs(mean - expected.mean) <= 5 * mean_error))
    problems.push_back(format("mean {}, expected {}", mean, expected.mean));
  if (!(std::abs(variance - expected.variance) <= 5 * variance_error))
    problems.push_back(format("variance {}, expected {}", variance, expected.variance));
  const double distance = Distance(draws, expected.cdf, expected.integers);
  if (!(distance <= 2 / std::sqrt(n)))
    problems.push_back(format("Kolmogorov-Smirnov distance {}", distance));
  return problems;
}

// The distribution function of a density, by the trapezoidal rule from 0 on; of mass 0 below.
Cdf Integral(const std::function<double(double)>& density, double end, int steps) {
  auto sums = std::make_shared<Values>(1, 0.0);
  const double width = end / steps;
  for (int i = 0; i < steps; ++i) {
    sums->push_back(sums->back() +
                    width * (density((i + 1e-9) * width) + density((i + 1) * width)) / 2);
  }
  return [=](double x) {
    const double at = std::min(x / width, static_cast<double>(steps) - 1);
    const auto i = static_cast<size_t>(at);
    return (*sums)[i] + (at - static_cast<double>(i)) * ((*sums)[i + 1] - (*sums)[i]);
  };
}

// The distribution function of probabilities of 0, 1, 2, ...
Cdf Sums(const std::function<double(double)>& probability, int count) {
  auto sums = std::make_shared<Values>();
  double sum = 0;
  for (int k = 0; k < count; ++k) sums->push_back(sum += probability(k));
  return
      [=](double x) { return (*sums)[static_cast<size_t>(std::clamp<double>(x, 0, count - 1))]; };
}

Law GammaOf(double shape, double scale) {
  const double variance = shape * scale * scale;
  Law e;
  if (shape == 1) {
    e.cdf = [=](double x) { return 1 - std::exp(-x / scale); };
  } else if (shape == 0.5) {  // half the square of a normal number
    e.cdf = [=](double x) { return std::erf(std::sqrt(x / scale)); };
  } else {
    e.cdf = Integral(
        [=](double x) {
          return std::exp((shape - 1) * std::log(x) - x / scale - std::lgamma(shape) -
                          shape * std::log(scale));
        },
        scale * (shape + 12 * std::sqrt(shape) + 12), 200000);
  }
  e.mean = shape * scale;
  e.variance = variance;
  e.fourth = variance * variance * (3 + 6 / shape);
  return e;
}

Law PoissonOf(double mean) {
  return {Sums([=](double k) { return std::exp(k * std::log(mean) - mean - std::lgamma(k + 1)); },
               static_cast<int>(mean + 20 * std::sqrt(mean) + 20)),
          mean, mean, mean + 3 * mean * mean, true};
}

// With `successes` of any size, of probability p.
Law NegativeBinomialOf(double successes, double p) {
  const double q = 1 - p, mean = successes * q / p, variance = mean / p;
  return {Sums(
              [=](double k) {
                return std::exp(std::lgamma(k + successes) - std::lgamma(k + 1) -
                                std::lgamma(successes) + successes * std::log(p) + k * std::log(q));
              },
              static_cast<int>(mean + 40 * std::sqrt(variance) + 40)),
          mean, variance, variance * variance * (3 + 6 / successes + p * p / (successes * q)),
          true};
}

void RunDistribution(const std::string& op, Kwargs kwargs, const Law& expected) {
  OperatorCase c;
  c.name = op;
  for (const auto& [key, value] : kwargs) c.name += " " + key + "=" + value;
  c.op = op;
  c.kwargs = std::move(kwargs);
  c.kwargs.emplace_back("shape", "(200, 200)");
  c.check = [=](const CaseResult& result) { return Compare(result.out[0], expected); };
  c.backward = false;
  c.types = {DType::kFloat32};
  c.tolerance = {16, "the same numbers again"};
  RunCase(c);
}

TEST_CASE("draws follow their distributions: moments, and Kolmogorov and Smirnov's distance") {
  RunDistribution("_random_exponential", {{"lam", "2.5"}},
                  {[](double x) { return 1 - std::exp(-2.5 * x); }, 0.4, 0.16, 9 * 0.16 * 0.16});
  for (const double shape : {0.5, 1.0, 2.75, 40.0})
    RunDistribution("_random_gamma", {{"alpha", format("{}", shape)}, {"beta", "1.5"}},
                    GammaOf(shape, 1.5));
  for (const double mean : {0.25, 3.0, 9.99, 10.0, 37.5, 1000.0})
    RunDistribution("_random_poisson", {{"lam", format("{}", mean)}}, PoissonOf(mean));
  RunDistribution("_random_negative_binomial", {{"k", "1"}, {"p", "0.25"}},
                  NegativeBinomialOf(1, 0.25));
  RunDistribution("_random_negative_binomial", {{"k", "12"}, {"p", "0.4"}},
                  NegativeBinomialOf(12, 0.4));
  RunDistribution("_random_generalized_negative_binomial", {{"mu", "4"}, {"alpha", "0.5"}},
                  NegativeBinomialOf(2, 1 / (1 + 0.5 * 4)));
  RunDistribution("_random_generalized_negative_binomial", {{"mu", "4"}, {"alpha", "0"}},
                  PoissonOf(4));
}

TEST_CASE("distributions of one value") {
  for (const auto& [op, kwargs] :
       {std::pair<std::string, Kwargs>{"_random_poisson", {{"lam", "0"}}},
        {"_random_negative_binomial", {{"k", "3"}, {"p", "1"}}},
        {"_random_generalized_negative_binomial", {{"mu", "0"}, {"alpha", "2"}}}}) {
    OperatorCase c;
    c.name = c.op = op;
    c.kwargs = kwargs;
    c.kwargs.emplace_back("shape", "(5, 7)");
    c.forward = [](const Arrays&, const Arrays&) { return Arrays{Values(35, 0.0)}; };
    c.backward = false;
    c.tolerance = {0, "a constant"};
    RunCase(c);
  }
}

TEST_CASE("integers are uniform over their range, which may be that of the type") {
  for (const auto& [low, high] : {std::pair<int64_t, int64_t>{-3, 4}, {0, 1000}}) {
    OperatorCase c;
    c.name = format("_random_randint {} {}", low, high);
    c.op = "_random_randint";
    c.kwargs = {
        {"low", std::to_string(low)}, {"high", std::to_string(high)}, {"shape", "(40000,)"}};
    const double count = static_cast<double>(high - low), first = static_cast<double>(low);
    const Law expected{[=](double x) { return (x - first + 1) / count; }, first + (count - 1) / 2,
                       (count * count - 1) / 12,
                       (count * count - 1) * (3 * count * count - 7) / 240, true};
    c.check = [=](const CaseResult& result) { return Compare(result.out[0], expected); };
    c.backward = false;
    c.types = {DType::kInt32};
    c.tolerance = {0, "integers"};
    RunCase(c);
  }
  // Of 64 bits; ranges and bounds beyond 2^32.
  for (const auto& [low, high] : {std::pair<int64_t, int64_t>{-3, 4},
                                  {-7'000'000'000, 9'000'000'000},
                                  {5'000'000'000, 5'000'000'010}}) {
    OperatorCase c;
    c.name = format("_random_randint int64 {} {}", low, high);
    c.op = "_random_randint";
    c.kwargs = {{"low", std::to_string(low)},
                {"high", std::to_string(high)},
                {"dtype", "int64"},
                {"shape", "(40000,)"}};
    const double count = static_cast<double>(high - low), first = static_cast<double>(low);
    const Law expected{[=](double x) { return (x - first + 1) / count; }, first + (count - 1) / 2,
                       (count * count - 1) / 12,
                       (count * count - 1) * (3 * count * count - 7) / 240, true};
    c.check = [=](const CaseResult& result) {
      std::vector<std::string> problems = Compare(result.out[0], expected);
      for (const double x : result.out[0]) {
        if (x < first || x >= first + count) problems.push_back(format("{} is out of range", x));
      }
      return problems;
    };
    c.backward = false;
    c.types = {DType::kInt64};
    c.tolerance = {0, "integers"};
    RunCase(c);
  }
  const auto op = TestRegistry().Create("random_randint", {{"low", "0"}, {"high", "9"}});
  std::vector<DType> in, out = {DType::kUnknown}, aux;
  CHECK(op->InferType(&in, &out, &aux));
  CHECK(out[0] == DType::kInt32);
  std::vector<TShape> none, shape = {TShape{4, 5}}, no_aux;
  const auto some = TestRegistry().Create("_random_uniform", {{"shape", "(0, 5)"}});
  CHECK(some->InferShape(&none, &shape, &no_aux));
  CHECK(shape[0] == TShape{4, 5});
  CHECK_THROWS_WITH_AS(TestRegistry().Create("_random_randint", {{"low", "4"}, {"high", "4"}}),
                       "_random_randint: low = 4 must be less than high = 4", Error);
  const auto infer = [&](const char* low, const char* high, DType wanted) {
    out = {wanted};
    TestRegistry()
        .Create("_random_randint", {{"low", low}, {"high", high}})
        ->InferType(&in, &out, &aux);
    return out[0];
  };
  CHECK(infer("-2147483648", "2147483648", DType::kUnknown) == DType::kInt32);
  CHECK_THROWS_WITH_AS(infer("0", "2147483649", DType::kUnknown),
                       "_random_randint: int32 cannot hold the numbers from low = 0 to high = "
                       "2147483649; use dtype = int64",
                       Error);
  CHECK_THROWS_WITH_AS(infer("-2147483649", "0", DType::kInt32), doctest::Contains("int64"), Error);
  CHECK(infer("-2147483649", "2147483649", DType::kInt64) == DType::kInt64);
}

TEST_CASE(
    "uniform numbers lie inside of (0, 1), and the largest end a search for a Poisson number") {
  using random_sample::InsideUnit;
  CHECK(InsideUnit(0) == 0x1p-53);
  CHECK(InsideUnit(~uint64_t{0}) == 1 - 0x1p-53);
  CHECK(InsideUnit(uint64_t{1} << 63) == 0.5 + 0x1p-53);
  for (const double mean : {1e-300, 1e-3, 0.5, 4.0, 9.99}) {
    const double largest = random_sample::SmallPoissonAt(1 - 0x1p-53, mean);
    // A tail of about 2^-53, by Chernoff's bound of the mass from k on.
    CHECK(largest < 60);
    CHECK(random_sample::SmallPoissonAt(std::exp(-mean) / 2, mean) == 0);
  }
  CHECK(random_sample::SmallPoissonAt(std::exp(-2.0) * 2.5, 2) == 1);
  CHECK(random_sample::SmallPoissonAt(std::exp(-2.0) * 3.5, 2) == 2);
}

// Rows of one operator call, each with its own parameters.
TEST_CASE("distributions of many parameters: each row follows its own" *
          doctest::test_suite("long")) {
  const auto run = [](const std::string& op, const std::vector<Values>& parameters,
                      const std::vector<Law>& expected) {
    OperatorCase c;
    c.name = c.op = op;
    c.kwargs = {{"shape", "(200, 100)"}};
    const auto rows = static_cast<int64_t>(expected.size());
    c.shapes.assign(parameters.size(), TShape{rows});
    for (const Values& parameter : parameters) c.inputs.push_back(Cycle(parameter));
    c.check = [=](const CaseResult& result) {
      std::vector<std::string> problems;
      const size_t each = result.out[0].size() / expected.size();
      for (size_t row = 0; row < expected.size(); ++row) {
        const auto first = result.out[0].begin() + static_cast<std::ptrdiff_t>(row * each);
        for (const std::string& problem :
             Compare(Values(first, first + static_cast<std::ptrdiff_t>(each)), expected[row]))
          problems.push_back(format("row {}: {}", row, problem));
      }
      return problems;
    };
    c.backward = false;
    c.types = {DType::kFloat32};
    c.tolerance = {16, "the same numbers again"};
    RunCase(c);
  };
  const auto uniform = [](double low, double high) {
    const double width = high - low;
    return Law{[=](double x) { return (x - low) / width; }, (low + high) / 2, width * width / 12,
               std::pow(width, 4) / 80};
  };
  const auto normal = [](double mean, double deviation) {
    return Law{[=](double x) { return std::erfc((mean - x) / deviation / std::sqrt(2.0)) / 2; },
               mean, deviation * deviation, 3 * std::pow(deviation, 4)};
  };
  run("_sample_uniform", {{-1, 0, 2}, {3, 0.5, 4}},
      {uniform(-1, 3), uniform(0, 0.5), uniform(2, 4)});
  run("_sample_normal", {{2, -4}, {0.5, 3}}, {normal(2, 0.5), normal(-4, 3)});
  run("_sample_exponential", {{0.5, 4}}, {GammaOf(1, 2), GammaOf(1, 0.25)});
  run("_sample_gamma", {{0.5, 3, 20}, {1, 2, 0.25}},
      {GammaOf(0.5, 1), GammaOf(3, 2), GammaOf(20, 0.25)});
  run("_sample_poisson", {{0.5, 6, 60}}, {PoissonOf(0.5), PoissonOf(6), PoissonOf(60)});
  run("_sample_negative_binomial", {{2, 7}, {0.5, 0.25}},
      {NegativeBinomialOf(2, 0.5), NegativeBinomialOf(7, 0.25)});
  run("_sample_generalized_negative_binomial", {{3, 10}, {0.25, 0.5}},
      {NegativeBinomialOf(4, 1 / 1.75), NegativeBinomialOf(2, 1.0 / 6)});
}

TEST_CASE("many distributions: arguments and results of other types") {
  for (const DType result : {DType::kFloat64, DType::kFloat16, DType::kBfloat16}) {
    OperatorCase c;
    c.name = format("_sample_uniform of {}", NameOf(result));
    c.op = "_sample_uniform";
    c.kwargs = {{"shape", "(100, 100)"}, {"dtype", NameOf(result)}};
    c.shapes = {{2}, {2}};
    c.inputs = {Cycle({-1, 2}), Cycle({3, 4})};
    c.check = [](const CaseResult& r) {
      std::vector<std::string> problems;
      const Values first(r.out[0].begin(), r.out[0].begin() + 10000),
          second(r.out[0].begin() + 10000, r.out[0].end());
      // Numbers near 3 are 2^-6 apart in bfloat16.
      for (const auto& [draws, low, high] :
           {std::tuple{first, -1.0, 3.0}, std::tuple{second, 2.0, 4.0}}) {
        for (const double part : {0.25, 0.5, 0.75}) {
          if (std::abs(Below(draws, low + part * (high - low)) - part) > 0.025 + 0x1p-7)
            problems.push_back(format("{} below {} of [{}, {}]",
                                      Below(draws, low + part * (high - low)), part, low, high));
        }
        if (Below(draws, low) > 0 || Below(draws, high + 1e-6) < 1)
          problems.push_back(format("numbers outside of [{}, {}]", low, high));
      }
      return problems;
    };
    c.backward = false;
    c.types = {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kInt32};  // arguments
    c.tolerance = {16, "the same numbers again"};
    RunCase(c);
  }
}

TEST_CASE("many distributions: the type of the result does not depend on the arguments") {
  const auto infer = [](const Kwargs& kwargs, DType argument, DType wanted) {
    std::vector<DType> in(2, argument), out{wanted}, aux;
    const bool known = TestRegistry().Create("_sample_normal", kwargs)->InferType(&in, &out, &aux);
    CHECK(known);
    return out[0];
  };
  CHECK(infer({}, DType::kFloat64, DType::kUnknown) == DType::kFloat32);
  CHECK(infer({}, DType::kInt32, DType::kUnknown) == DType::kFloat32);
  CHECK(infer({}, DType::kFloat32, DType::kFloat16) == DType::kFloat16);
  CHECK(infer({{"dtype", "float64"}}, DType::kFloat16, DType::kUnknown) == DType::kFloat64);
  CHECK_THROWS_AS(infer({{"dtype", "float64"}}, DType::kFloat32, DType::kFloat32), Error);
}

TEST_CASE("parameters that no distribution has give NaN, and nothing hangs") {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  for (const auto& [op, bad] :
       {std::pair<std::string, std::vector<Values>>{"_sample_exponential", {{-1, 0, nan}}},
        {"_sample_normal", {{0, 1, 2}, {-1, nan, -inf}}},
        {"_sample_gamma", {{-1, 1, nan}, {1, 0, 1}}},
        {"_sample_poisson", {{-1, nan, -inf}}},
        {"_sample_negative_binomial", {{0, 3, 3}, {0.5, 0, 1.5}}},
        {"_sample_generalized_negative_binomial", {{-1, 1, nan}, {1, -1, 1}}}}) {
    OperatorCase c;
    c.name = op + " of bad parameters";
    c.op = op;
    c.shapes.assign(bad.size(), TShape{3});
    for (const Values& parameter : bad) c.inputs.push_back(Cycle(parameter));
    c.forward = [nan](const Arrays&, const Arrays&) { return Arrays{Values(3, nan)}; };
    c.backward = false;
    RunCase(c);
  }
}

TEST_CASE("shapes of many distributions, in both directions") {
  const auto op = TestRegistry().Create("sample_gamma", {{"shape", "(4, 5)"}});
  std::vector<TShape> in{{2, -1}, {-1, 3}}, out(1), aux;
  CHECK(op->InferShape(&in, &out, &aux));
  CHECK(in == std::vector<TShape>{{2, 3}, {2, 3}});
  CHECK(out[0] == TShape{2, 3, 4, 5});
  in.assign(2, TShape());
  out = {{7, 4, 5}};
  CHECK(op->InferShape(&in, &out, &aux));
  CHECK(in == std::vector<TShape>{{7}, {7}});
  out = {{7, 4, 6}};
  CHECK_THROWS_WITH_AS(op->InferShape(&in, &out, &aux), doctest::Contains("output"), Error);
  std::vector<DType> types{DType::kFloat64, DType::kUnknown}, out_type{DType::kUnknown}, no_type;
  CHECK(op->InferType(&types, &out_type, &no_type));
  CHECK(types[1] == DType::kFloat64);
  CHECK(out_type[0] == DType::kFloat32);
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
