// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

// Along the middle axis of [a, b, c].
void Examine(const Kwargs& kwargs, const TShape& shape, int64_t outer, int64_t length,
             int64_t inner) {
  OperatorCase c;
  c.op = "cumsum";
  c.name = format("cumsum {}", shape.ToString());
  c.kwargs = kwargs;
  c.shapes = {shape};
  c.inputs = {Uniform(-2, 2)};
  c.forward = [=](const Arrays& in, const Arrays&) {
    Values y = in[0];
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t k = 1; k < length; ++k) {
        for (int64_t i = 0; i < inner; ++i) {
          const auto at = static_cast<size_t>((o * length + k) * inner + i);
          y[at] += y[at - static_cast<size_t>(inner)];
        }
      }
    }
    return Arrays{y};
  };
  c.types = kAllFloatingTypes;
  c.tolerance = {4, "sums in double"};
  c.must_accept = {"simple"};
  RunCase(c);
}

TEST_CASE("cumsum") {
  Examine({{"axis", "1"}}, {2, 5, 3}, 2, 5, 3);
  Examine({{"axis", "-1"}}, {4, 7}, 4, 7, 1);
  Examine({{"axis", "0"}}, {6, 2}, 1, 6, 2);
  Examine({}, {3, 4}, 1, 12, 1);
  Examine({{"axis", "1"}}, {3, 0, 2}, 3, 0, 2);
  std::vector<TShape> in = {TShape{2}}, out(1), aux;
  CHECK_THROWS_WITH(
      TestRegistry().Create("cumsum", {{"dtype", "float64"}})->InferShape(&in, &out, &aux),
      doctest::Contains("dtype is not supported"));
}

}  // namespace
}  // namespace mxtrain::test
