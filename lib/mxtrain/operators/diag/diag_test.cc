// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

void RunDiag(const Kwargs& kwargs, const TShape& shape,
             const std::function<Values(const Values&)>& f) {
  OperatorCase c;
  c.op = "diag";
  c.name = format("diag {} {}", shape.ToString(), kwargs.empty() ? "" : kwargs[0].second);
  c.kwargs = kwargs;
  c.shapes = {shape};
  c.inputs = {Uniform(-2, 2)};
  c.forward = [f](const Arrays& in, const Arrays&) { return Arrays{f(in[0])}; };
  c.types = kAllFloatingTypes;
  c.tolerance = {0, "a copy"};
  RunCase(c);
}

TEST_CASE("diag of a vector") {
  for (const int64_t n : {1, 4, 0}) {
    for (const int64_t k : {0, 2, -3}) {
      RunDiag({{"k", format("{}", k)}}, {n}, [=](const Values& x) {
        const int64_t side = n + std::abs(k);
        Values y(static_cast<size_t>(side * side));
        for (int64_t i = 0; i < n; ++i) {
          const int64_t row = i + (k < 0 ? -k : 0), column = i + (k > 0 ? k : 0);
          y[static_cast<size_t>(row * side + column)] = x[static_cast<size_t>(i)];
        }
        return y;
      });
    }
  }
}

TEST_CASE("diag of matrices") {
  for (const int64_t k : {0, 1, -2}) {
    RunDiag({{"k", format("{}", k)}}, {4, 3}, [=](const Values& x) {
      Values y;
      for (int64_t i = 0; i < 4; ++i) {
        if (i + k >= 0 && i + k < 3) y.push_back(x[static_cast<size_t>(i * 3 + i + k)]);
      }
      return y;
    });
  }
  RunDiag({{"k", "1"}, {"axis1", "-1"}, {"axis2", "0"}}, {4, 2, 3}, [](const Values& x) {
    Values y;
    for (int64_t j = 0; j < 2; ++j) {
      for (int64_t i = 0; i < 3; ++i)  // row i of the last axis, column i + 1 of the first
        y.push_back(x[static_cast<size_t>(((i + 1) * 2 + j) * 3 + i)]);
    }
    return y;
  });
}

TEST_CASE("diag: errors") {
  const auto infer = [](const Kwargs& kwargs) {
    std::vector<TShape> in = {TShape{2, 3}}, out(1), aux;
    TestRegistry().Create("diag", kwargs)->InferShape(&in, &out, &aux);
  };
  CHECK_THROWS_WITH(infer({{"k", "3"}}),
                    "diag: k = 3 is outside of matrices of 2 rows and 3 columns");
  CHECK_THROWS_AS(infer({{"k", "-9223372036854775808"}}), Error);
  CHECK_THROWS_WITH(infer({{"axis1", "1"}}),
                    "diag: axis1 = 1 and axis2 = 1 are the same axis of shape [2, 3]");
}

}  // namespace
}  // namespace mxtrain::test
