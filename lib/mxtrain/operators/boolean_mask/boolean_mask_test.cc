// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

void ExamineBooleanMask(const TShape& shape, const Values& index, int64_t size) {
  OperatorCase c;
  c.op = "_contrib_boolean_mask";
  c.name = format("boolean_mask {} to {}", shape.ToString(), size);
  c.kwargs = {{"size", std::to_string(size)}};
  c.shapes = {shape, {shape[0]}};
  c.inputs = {Uniform(-2, 2), Cycle(index)};
  const int64_t length = shape.Product(1, shape.ndim());
  c.forward = [=](const Arrays& in, const Arrays&) {
    Values y;
    for (int64_t row = 0; row < shape[0]; ++row) {
      if (in[1][static_cast<size_t>(row)] == 0) continue;
      const auto first = in[0].begin() + row * length;
      y.insert(y.end(), first, first + length);
    }
    y.resize(static_cast<size_t>(size * length));
    return Arrays{y};
  };
  c.gradient = [=](const Arrays& in, const Arrays&, const Arrays& head) {
    Values gradient(in[0].size());
    size_t from = 0;
    for (size_t i = 0; i < gradient.size(); ++i) {
      if (in[1][i / static_cast<size_t>(length)] != 0 && from < head[0].size())
        gradient[i] = head[0][from++];
    }
    return Arrays{gradient, Values(in[1].size())};
  };
  c.types = kAllFloatingTypes;
  c.tolerance = {0, "copies"};
  RunCase(c);
}

TEST_CASE("boolean_mask") {
  ExamineBooleanMask({5, 3}, {0, 1, 0, -2, 0.5}, 3);  // as many as are chosen
  ExamineBooleanMask({5, 2, 2}, {0, 1, 0, 1, 0}, 4);  // zeros after them
  ExamineBooleanMask({6}, {1, 1, 0, 1, 1, 0}, 2);     // more are chosen
  ExamineBooleanMask({3, 2}, {0, 0, 0}, 2);           // none
  ExamineBooleanMask({1, 4}, {1}, 1);
}

TEST_CASE("boolean_mask: a row that is not chosen may be infinite") {
  OperatorCase c;
  c.op = c.name = "boolean_mask";
  c.kwargs = {{"size", "2"}};
  c.shapes = {{2, 2}, {2}};
  c.inputs = {Cycle({HUGE_VAL, -HUGE_VAL, 3, 4}), Cycle({0, 1})};
  c.forward = [](const Arrays&, const Arrays&) { return Arrays{{3, 4, 0, 0}}; };
  c.backward = false;
  RunCase(c);
}

TEST_CASE("boolean_mask: the number of rows is asked for") {
  CHECK_THROWS_WITH_AS(TestRegistry().Create("boolean_mask", {}), doctest::Contains("'size'"),
                       Error);
  const auto mask = TestRegistry().Create("boolean_mask", {{"size", "4"}});
  std::vector<TShape> in = {TShape{5, 3}, TShape()}, out(1), aux;
  CHECK(mask->InferShape(&in, &out, &aux));
  CHECK(in[1] == TShape{5});
  CHECK(out[0] == TShape{4, 3});
  in = {TShape{3, 3}, TShape()};
  CHECK_THROWS_WITH_AS(mask->InferShape(&in, &out, &aux),
                       "boolean_mask: size = 4, but data of shape [3, 3] have 3 rows", Error);
}

}  // namespace
}  // namespace mxtrain::test
