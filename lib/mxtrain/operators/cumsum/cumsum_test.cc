// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

// Along the middle axis of [a, b, c].
void ExamineCumsum(const Kwargs& kwargs, const TShape& shape, int64_t outer, int64_t length,
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
  c.must_accept = {"ref"};
  RunCase(c);
}

TEST_CASE("cumsum") {
  ExamineCumsum({{"axis", "1"}}, {2, 5, 3}, 2, 5, 3);
  ExamineCumsum({{"axis", "-1"}}, {4, 7}, 4, 7, 1);
  ExamineCumsum({{"axis", "0"}}, {6, 2}, 1, 6, 2);
  ExamineCumsum({}, {3, 4}, 1, 12, 1);
  ExamineCumsum({{"axis", "1"}}, {3, 0, 2}, 3, 0, 2);
}

TEST_CASE("cumsum in another type than the data's") {
  for (const DType type : {DType::kFloat64, DType::kFloat32, DType::kInt32}) {
    OperatorCase c;
    c.op = "_np_cumsum";
    c.name = format("cumsum in {}", NameOf(type));
    c.kwargs = {{"dtype", NameOf(type)}};
    c.shapes = {{2, 2}};
    c.inputs = {Cycle({1.75, -2.25, 3.5, 100})};
    const bool whole = type == DType::kInt32;
    c.forward = [=](const Arrays&, const Arrays&) {
      return Arrays{whole ? Values{1, -1, 2, 102} : Values{1.75, -0.5, 3, 103}};
    };
    c.gradient = [](const Arrays&, const Arrays&, const Arrays& head) {
      Values gradient = head[0];
      for (size_t i = 3; i > 0; --i) gradient[i - 1] += gradient[i];
      return Arrays{gradient};
    };
    c.types = {DType::kFloat32, DType::kFloat16};
    c.backward = !whole;
    c.tolerance = {4, "sums of a few numbers"};
    RunCase(c);
  }
}

TEST_CASE("cumsum: types and shapes") {
  std::vector<TShape> in = {TShape{2, 3}}, out(1), aux;
  CHECK(TestRegistry().Create("cumsum", {})->InferShape(&in, &out, &aux));
  CHECK(out[0] == TShape{6});
  std::vector<TShape> whole(1);
  CHECK_THROWS_WITH_AS(
      TestRegistry().Create("cumsum", {{"axis", "2"}})->InferShape(&in, &whole, &aux),
      doctest::Contains("axis"), Error);
  std::vector<DType> data = {DType::kInt32}, sums = {DType::kUnknown}, none;
  CHECK(TestRegistry().Create("cumsum", {{"dtype", "float64"}})->InferType(&data, &sums, &none));
  CHECK(sums[0] == DType::kFloat64);
}

}  // namespace
}  // namespace mxtrain::test
