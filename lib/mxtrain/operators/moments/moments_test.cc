// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>

#include "mxtrain/operator/imperative.h"
#include "tests/support/operator_case.h"
#include "tests/support/small_nets.h"

namespace mxtrain::test {
namespace {

// Rows of [outer, length, inner] along the middle axis.
std::vector<Values> RowsOf(const Values& x, int64_t outer, int64_t length, int64_t inner) {
  std::vector<Values> rows;
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      Values& row = rows.emplace_back();
      for (int64_t k = 0; k < length; ++k)
        row.push_back(x[static_cast<size_t>((o * length + k) * inner + i)]);
    }
  }
  return rows;
}

double Mean(const Values& x) {
  double sum = 0;
  for (const double v : x) sum += v;
  return sum / static_cast<double>(x.size());
}

TEST_CASE("moments") {
  const auto examine = [](const Kwargs& kwargs, const TShape& shape, int64_t outer, int64_t length,
                          int64_t inner) {
    OperatorCase c;
    c.op = "moments";
    c.name = format("moments {}", shape.ToString());
    c.kwargs = kwargs;
    c.shapes = {shape};
    c.inputs = {Uniform(-2, 2)};
    c.forward = [=](const Arrays& in, const Arrays&) {
      Arrays out(2);
      for (const Values& row : RowsOf(in[0], outer, length, inner)) {
        const double mean = Mean(row);
        out[0].push_back(mean);
        out[1].push_back(Mean(Apply(row, [mean](double x) { return (x - mean) * (x - mean); })));
      }
      return out;
    };
    c.tolerance = {16, "means of differences"};
    RunCase(c);
  };
  examine({{"axes", "(1,)"}}, {2, 5, 3}, 2, 5, 3);
  examine({{"axes", "(1, 2)"}, {"keepdims", "True"}}, {2, 5, 3}, 2, 15, 1);
  examine({{"axes", "-1"}}, {4, 1}, 4, 1, 1);
  examine({}, {3, 4}, 1, 12, 1);
}

TEST_CASE("logsumexp") {
  const auto examine = [](const Kwargs& kwargs, const TShape& shape, int64_t outer, int64_t length,
                          int64_t inner, double offset) {
    OperatorCase c;
    c.op = "logsumexp";
    c.name = format("logsumexp {} around {}", shape.ToString(), offset);
    c.kwargs = kwargs;
    c.shapes = {shape};
    c.inputs = {Uniform(offset - 2, offset + 2)};
    c.forward = [=](const Arrays& in, const Arrays&) {
      Values y;
      for (const Values& row : RowsOf(in[0], outer, length, inner))
        y.push_back(offset + std::log(static_cast<double>(length) * Mean(Apply(row, [=](double x) {
                                        return std::exp(x - offset);
                                      }))));
      return Arrays{y};
    };
    // Softmaxes times the head gradients: differences of sums around 500 are too coarse.
    c.gradient = [=](const Arrays& in, const Arrays&, const Arrays& head) {
      Values dx(in[0].size());
      for (int64_t o = 0; o < outer; ++o) {
        for (int64_t i = 0; i < inner; ++i) {
          const auto at = [&](int64_t k) {
            return static_cast<size_t>((o * length + k) * inner + i);
          };
          double sum = 0;
          for (int64_t k = 0; k < length; ++k) sum += std::exp(in[0][at(k)] - offset);
          for (int64_t k = 0; k < length; ++k) {
            dx[at(k)] =
                head[0][static_cast<size_t>(o * inner + i)] * std::exp(in[0][at(k)] - offset) / sum;
          }
        }
      }
      return Arrays{dx};
    };
    c.tolerance = {16, "elementary functions"};
    RunCase(c);
  };
  examine({{"axis", "1"}}, {2, 5, 3}, 2, 5, 3, 0);
  examine({{"axis", "(0, 1)"}, {"keepdims", "True"}}, {3, 4}, 1, 12, 1, 500);
  examine({{"axis", "-1"}}, {3, 4}, 3, 4, 1, -500);
  examine({}, {3, 4}, 1, 12, 1, 0);
}

TEST_CASE("logsumexp of infinities is infinite") {
  const std::unique_ptr<Runtime> runtime = NewRuntime();
  const float infinity = std::numeric_limits<float>::infinity();
  const NDArray x =
      NDArray::FromVector(*runtime, {3, 2}, {-infinity, -infinity, infinity, 1, -infinity, 2});
  const std::vector<float> y = Invoke("logsumexp", {&x, 1}, {{"axis", "1"}})[0].ToVector();
  CHECK(y == std::vector<float>{-infinity, infinity, 2});
  for (const char* type : {"float16", "bfloat16", "float64"}) {
    CAPTURE(type);
    const NDArray typed = Invoke("Cast", {&x, 1}, {{"dtype", type}})[0],
                  z = Invoke("logsumexp", {&typed, 1}, {{"axis", "1"}})[0];
    CHECK(Invoke("Cast", {&z, 1}, {{"dtype", "float32"}})[0].ToVector() == y);
  }
  const NDArray large = NDArray::FromVector(*runtime, {2, 1}, {2e38f, -3e38f});
  CHECK(Invoke("logsumexp", {&large, 1}, {{"axis", "1"}})[0].ToVector() ==
        std::vector<float>{2e38f, -3e38f});
}

TEST_CASE("logsumexp: elements of -infinity have no part and no gradient") {
  OperatorCase c;
  c.op = c.name = "logsumexp";
  c.kwargs = {{"axis", "1"}};
  c.shapes = {{3, 4}};
  const double never = -std::numeric_limits<double>::infinity();
  c.inputs = {Cycle({never, 2, 0.5, 1, never, never, -1})};
  c.forward = [](const Arrays& in, const Arrays&) {
    Values y;
    for (const Values& row : RowsOf(in[0], 3, 4, 1))
      y.push_back(std::log(4 * Mean(Apply(row, [](double x) { return std::exp(x); }))));
    return Arrays{y};
  };
  c.gradient = [forward = c.forward](const Arrays& in, const Arrays& aux, const Arrays& head) {
    const Values y = forward(in, aux)[0];
    Values dx;
    for (size_t i = 0; i < in[0].size(); ++i)
      dx.push_back(head[0][i / 4] * std::exp(in[0][i] - y[i / 4]));
    return Arrays{dx};
  };
  c.types = kAllFloatingTypes;
  c.lowered_epsilons = 8;  // terms, sum and logarithm are rounded
  c.tolerance = {16, "elementary functions"};
  RunCase(c);
}

}  // namespace
}  // namespace mxtrain::test
