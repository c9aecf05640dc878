// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

// Over axis 1 of [outer, length, inner].
void ExamineNorm(const TShape& shape, const Kwargs& kwargs, int ord, int64_t outer, int64_t length,
                 int64_t inner) {
  OperatorCase c;
  c.op = "norm";
  c.name = format("norm of order {} of {}", ord, shape.ToString());
  c.kwargs = kwargs;
  c.shapes = {shape};
  c.inputs = {UniformAwayFrom(-2, 2, {0})};
  c.forward = [=](const Arrays& in, const Arrays&) {
    Values y;
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < inner; ++i) {
        double sum = 0;
        for (int64_t k = 0; k < length; ++k)
          sum += std::pow(std::abs(in[0][static_cast<size_t>((o * length + k) * inner + i)]), ord);
        y.push_back(std::pow(sum, 1.0 / ord));
      }
    }
    return Arrays{y};
  };
  c.types = kAllFloatingTypes;
  c.tolerance = {32, "a sum of up to 60 terms in double, a root, one rounding"};
  c.must_accept = {"simple"};
  RunCase(c);
}

TEST_CASE("norms over axes") {
  ExamineNorm({3, 4, 5}, {}, 2, 1, 60, 1);
  ExamineNorm({3, 4, 5}, {{"ord", "1"}}, 1, 1, 60, 1);
  ExamineNorm({3, 4, 5}, {{"axis", "1"}, {"keepdims", "True"}}, 2, 3, 4, 5);
  ExamineNorm({3, 4, 5}, {{"ord", "1"}, {"axis", "(-1,)"}}, 1, 12, 5, 1);
  ExamineNorm({3, 4, 5}, {{"ord", "2"}, {"axis", "(0, 1)"}}, 2, 1, 12, 5);
  ExamineNorm({1}, {}, 2, 1, 1, 1);
  ExamineNorm({0, 3}, {{"axis", "1"}}, 2, 0, 3, 1);
}

TEST_CASE("norm: shapes, and the gradient at zero") {
  const auto shape = [](const Kwargs& kwargs) {
    std::vector<TShape> in = {TShape{2, 3, 4}}, out(1), aux;
    TestRegistry().Create("norm", kwargs)->InferShape(&in, &out, &aux);
    return out[0];
  };
  CHECK(shape({}) == TShape{1});
  CHECK(shape({{"axis", "(0, 2)"}}) == TShape{3});
  CHECK(shape({{"axis", "0"}, {"keepdims", "1"}}) == TShape{1, 3, 4});
  CHECK_THROWS_WITH(shape({{"ord", "3"}}), doctest::Contains("ord"));
  CHECK(shape({{"out_dtype", "None"}}) == TShape{1});
  CHECK_THROWS_WITH(shape({{"out_dtype", "float64"}}),
                    "norm: out_dtype is not supported; the result has the type of the data");
  CHECK_THROWS_WITH(shape({{"axis", "5"}}), "norm: axis 5 is out of range for shape [2, 3, 4]");

  for (const char* ord : {"1", "2"}) {
    OperatorCase c;
    c.op = c.name = "norm";
    c.kwargs = {{"ord", ord}};
    c.shapes = {TShape{3}};
    c.inputs = {Constant(0)};
    c.forward = [](const Arrays&, const Arrays&) { return Arrays{{0}}; };
    c.gradient = [](const Arrays&, const Arrays&, const Arrays&) { return Arrays{{0, 0, 0}}; };
    RunCase(c);
  }
}

}  // namespace
}  // namespace mxtrain::test
