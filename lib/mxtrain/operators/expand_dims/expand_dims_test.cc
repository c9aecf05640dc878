// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

TShape InferExpandDims(const char* op, const Kwargs& kwargs, const TShape& shape) {
  std::vector<TShape> in = {shape}, out(1), aux;
  TestRegistry().Create(op, kwargs)->InferShape(&in, &out, &aux);
  return out[0];
}

void ExamineExpandDims(const char* op, const Kwargs& kwargs, const TShape& shape) {
  OperatorCase c;
  c.op = op;
  c.name = format("{} of {}", op, shape.ToString());
  c.kwargs = kwargs;
  c.shapes = {shape};
  c.inputs = {Uniform(-2, 2)};
  c.forward = [](const Arrays& in, const Arrays&) { return Arrays{in[0]}; };
  c.types = kAllFloatingTypes;
  c.tolerance = {0, "a copy"};
  RunCase(c);
}

TEST_CASE("expand_dims and squeeze keep the elements") {
  ExamineExpandDims("expand_dims", {{"axis", "1"}}, {3, 5});
  ExamineExpandDims("expand_dims", {{"axis", "-1"}}, {0, 2});
  ExamineExpandDims("squeeze", {}, {3, 1, 5, 1});
  ExamineExpandDims("squeeze", {{"axis", "-1"}}, {1, 7, 1});
}

TEST_CASE("expand_dims: partial shapes") {
  const auto property = TestRegistry().Create("expand_dims", {{"axis", "-2"}});
  std::vector<TShape> in = {TShape{}}, out = {TShape{2, 1, -1}}, aux;
  CHECK(!property->InferShape(&in, &out, &aux));
  CHECK(in[0] == TShape{2, -1});
  in = {TShape{-1, 3}};
  CHECK(property->InferShape(&in, &out, &aux));
  CHECK(in[0] == TShape{2, 3});
  CHECK(out[0] == TShape{2, 1, 3});
}

TEST_CASE("expand_dims and squeeze: shapes") {
  CHECK(InferExpandDims("expand_dims", {{"axis", "0"}}, {2, 3}) == TShape{1, 2, 3});
  CHECK(InferExpandDims("expand_dims", {{"axis", "1"}}, {2, 3}) == TShape{2, 1, 3});
  CHECK(InferExpandDims("expand_dims", {{"axis", "-1"}}, {2, 3}) == TShape{2, 3, 1});
  CHECK(InferExpandDims("squeeze", {}, {1, 3, 1}) == TShape{3});
  CHECK(InferExpandDims("squeeze", {}, {1, 1}) == TShape{1});
  CHECK(InferExpandDims("squeeze", {{"axis", "(0,)"}}, {1, 3, 1}) == TShape{3, 1});
  CHECK(InferExpandDims("squeeze", {{"axis", "(0, -1)"}}, {1, 3, 1}) == TShape{3});
  CHECK_THROWS_WITH(InferExpandDims("expand_dims", {{"axis", "3"}}, {2, 3}),
                    "expand_dims: axis 3 is out of range for shape [2, 3, 1]");
  CHECK_THROWS_WITH(InferExpandDims("squeeze", {{"axis", "1"}}, {1, 3, 1}),
                    "squeeze: axis 1 of shape [1, 3, 1] does not have length 1");
}

}  // namespace
}  // namespace mxtrain::test
