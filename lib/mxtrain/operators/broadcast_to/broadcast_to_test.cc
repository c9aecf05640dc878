// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

// [a, b, c], each of length 1 or as in `out`, by definition.
Values Repeated(const Values& x, const TShape& shape, const TShape& out) {
  Values y;
  const auto at = [&](int axis, int64_t i) { return shape[axis] == 1 ? 0 : i; };
  for (int64_t i = 0; i < out[0]; ++i) {
    for (int64_t j = 0; j < out[1]; ++j) {
      for (int64_t k = 0; k < out[2]; ++k)
        y.push_back(x[static_cast<size_t>((at(0, i) * shape[1] + at(1, j)) * shape[2] + at(2, k))]);
    }
  }
  return y;
}

OperatorCase BroadcastToCase(const char* op, const Kwargs& kwargs,
                             const std::vector<TShape>& shapes, const TShape& out) {
  OperatorCase c;
  c.op = op;
  c.name = format("{} from {} to {}", op, shapes[0].ToString(), out.ToString());
  c.kwargs = kwargs;
  c.shapes = shapes;
  c.inputs = {Uniform(-2, 2)};
  c.forward = [=](const Arrays& in, const Arrays&) {
    return Arrays{Repeated(in[0], shapes[0], out)};
  };
  c.types = kAllFloatingTypes;
  c.tolerance = {16, "a copy; sums of up to 40 head gradients in double"};
  c.must_accept = {"simple"};
  return c;
}

TEST_CASE("broadcast_axis, broadcast_to and broadcast_like") {
  RunCase(BroadcastToCase("broadcast_axis", {{"axis", "(0, -1)"}, {"size", "(2, 5)"}}, {{1, 3, 1}},
                          {2, 3, 5}));
  RunCase(
      BroadcastToCase("broadcast_axes", {{"axis", "1"}, {"size", "4"}}, {{2, 1, 3}}, {2, 4, 3}));
  RunCase(BroadcastToCase("broadcast_axis", {}, {{2, 1, 3}}, {2, 1, 3}));
  RunCase(BroadcastToCase("broadcast_to", {{"shape", "(2, 0, 4)"}}, {{1, 3, 1}}, {2, 3, 4}));
  RunCase(BroadcastToCase("broadcast_to", {{"shape", "(2, 4, 5)"}}, {{1, 1, 1}}, {2, 4, 5}));
  RunCase(BroadcastToCase("broadcast_to", {{"shape", "(0, 3, 2)"}}, {{0, 3, 1}}, {0, 3, 2}));
  RunCase(BroadcastToCase("broadcast_like", {}, {{1, 3, 1}, {2, 3, 4}}, {2, 3, 4}));
  RunCase(BroadcastToCase("broadcast_like", {{"lhs_axes", "(0,)"}, {"rhs_axes", "(-1,)"}},
                          {{1, 3, 1}, {4, 2}}, {2, 3, 1}));
}

TEST_CASE("broadcast_axis, broadcast_to and broadcast_like: mismatched shapes") {
  const auto infer = [](const char* op, const Kwargs& kwargs, std::vector<TShape> in) {
    std::vector<TShape> out(1), aux;
    TestRegistry().Create(op, kwargs)->InferShape(&in, &out, &aux);
  };
  CHECK_THROWS_WITH(infer("broadcast_axis", {{"axis", "1"}, {"size", "4"}}, {TShape{2, 3}}),
                    "broadcast_axis: axis 1 of shape [2, 3] cannot be repeated to length 4; it "
                    "must have length 1");
  CHECK_THROWS_WITH(infer("broadcast_axis", {{"axis", "1"}}, {TShape{2, 1}}),
                    "broadcast_axis: axis = (1,) and size = () must have equally many entries");
  CHECK_THROWS_WITH(
      infer("broadcast_to", {{"shape", "(2, 3, 4)"}}, {TShape{3, 4}}),
      "broadcast_to: shape = (2, 3, 4) must have as many axes as the data of shape [3, 4]");
  CHECK_THROWS_WITH(infer("broadcast_like", {}, {TShape{1, 2}, TShape{2}}),
                    doctest::Contains("must have equally many axes"));
  CHECK_THROWS_WITH(infer("broadcast_like", {{"lhs_axes", "0"}}, {TShape{1}, TShape{2}}),
                    doctest::Contains("must be given together"));
}

}  // namespace
}  // namespace mxtrain::test
