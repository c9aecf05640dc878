// SPDX-License-Identifier: Apache-2.0
// SVMOutput and IdentityAttachKLSparseReg, whose gradients are not derivatives of their outputs.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

void ExamineSvmOutput(const Kwargs& kwargs, double margin, double factor, bool linear,
                      const TShape& shape) {
  OperatorCase c;
  c.op = "SVMOutput";
  c.name = format("SVMOutput {} {}", shape.ToString(), linear ? "linear" : "squared");
  c.kwargs = kwargs;
  c.shapes = {shape, {shape[0]}};
  c.inputs = {UniformAwayFrom(-3, 3, {-margin, margin}, 0.02), Labels(shape[1])};
  c.forward = [](const Arrays& in, const Arrays&) { return Arrays{in[0]}; };
  c.gradient = [=](const Arrays& in, const Arrays&, const Arrays&) {
    Values dx;
    for (size_t i = 0; i < in[0].size(); ++i) {
      const double x = in[0][i], classes = static_cast<double>(shape[1]);
      const double row = std::floor(static_cast<double>(i) / classes);
      const bool own = in[1][static_cast<size_t>(row)] == static_cast<double>(i) - row * classes;
      if (linear) {
        dx.push_back(own ? (margin > x ? -factor : 0) : (margin > -x ? factor : 0));
      } else {
        dx.push_back(own ? -2 * factor * std::max(0.0, margin - x)
                         : 2 * factor * std::max(0.0, margin + x));
      }
    }
    return Arrays{dx, {}};
  };
  c.types = kAllFloatingTypes;
  c.tolerance = {8, "two products"};
  RunCase(c);
}

TEST_CASE("SVMOutput") {
  ExamineSvmOutput({}, 1, 1, false, {5, 4});
  ExamineSvmOutput({{"use_linear", "True"}}, 1, 1, true, {5, 4});
  ExamineSvmOutput({{"margin", "0.5"}, {"regularization_coefficient", "2"}}, 0.5, 2, false, {3, 7});
  ExamineSvmOutput({{"margin", "2"}, {"regularization_coefficient", "0.25"}, {"use_linear", "1"}},
                   2, 0.25, true, {1, 1});
  ExamineSvmOutput({}, 1, 1, false, {0, 3});
  const auto property = TestRegistry().Create("SVMOutput", {});
  CHECK(!property->NeedsHeadGradient());
  CHECK(!property->HasGradient(1));
}

TEST_CASE("IdentityAttachKLSparseReg") {
  constexpr int64_t kBatch = 5, kUnits = 3;
  constexpr double kTarget = 0.2, kPenalty = 0.5, kMomentum = 0.75;
  OperatorCase c;
  c.op = c.name = "IdentityAttachKLSparseReg";
  c.kwargs = {{"sparseness_target", "0.2"}, {"penalty", "0.5"}, {"momentum", "0.75"}};
  c.shapes = {{kBatch, kUnits}};
  c.inputs = {Uniform(0.1, 0.9)};
  c.aux = {Uniform(0.2, 0.8)};
  const auto averages = [](const Arrays& in, const Arrays& aux) {
    Values r;
    for (int64_t u = 0; u < kUnits; ++u) {
      double mean = 0;
      for (int64_t n = 0; n < kBatch; ++n)
        mean += in[0][static_cast<size_t>(n * kUnits + u)] / kBatch;
      r.push_back(kMomentum * aux[0][static_cast<size_t>(u)] + (1 - kMomentum) * mean);
    }
    return r;
  };
  c.forward = [](const Arrays& in, const Arrays&) { return Arrays{in[0]}; };
  c.aux_after_backward = [averages](const Arrays& in, const Arrays& aux) {
    return Arrays{averages(in, aux)};
  };
  c.gradient = [averages](const Arrays& in, const Arrays& aux, const Arrays& head) {
    const Values r = averages(in, aux);
    Values dx = head[0];
    for (size_t i = 0; i < dx.size(); ++i) {
      const double rho = r[i % kUnits];
      dx[i] += kPenalty * (-kTarget / rho + (1 - kTarget) / (1 - rho));
    }
    return Arrays{dx};
  };
  c.types = kAllFloatingTypes;
  c.tolerance = {32, "quotients of averages"};
  RunCase(c);
}

}  // namespace
}  // namespace mxtrain::test
