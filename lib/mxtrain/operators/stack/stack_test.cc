// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

// `outer`: the product of the axes before the new one.
void ExamineStack(const TShape& shape, size_t count, int axis, int64_t outer) {
  OperatorCase c;
  c.op = "stack";
  c.name = format("stack of {} of shape {} along {}", count, shape.ToString(), axis);
  c.kwargs = {{"num_args", format("{}", count)}, {"axis", format("{}", axis)}};
  c.shapes.assign(count, shape);
  c.inputs = {Uniform(-2, 2)};
  c.forward = [=](const Arrays& in, const Arrays&) {
    const int64_t inner = outer == 0 ? 0 : shape.Size() / outer;
    Values y;
    for (int64_t o = 0; o < outer; ++o) {
      for (const Values& one : in)
        y.insert(y.end(), one.begin() + o * inner, one.begin() + (o + 1) * inner);
    }
    return Arrays{y};
  };
  c.types = kAllFloatingTypes;
  c.tolerance = {0, "a copy"};
  c.must_accept = {"ref"};
  RunCase(c);
}

TEST_CASE("stack") {
  ExamineStack({3, 5}, 3, 0, 1);
  ExamineStack({3, 5}, 2, 1, 3);
  ExamineStack({3, 5}, 2, 2, 15);
  ExamineStack({2, 3, 5}, 4, -1, 30);
  ExamineStack({2, 3, 5}, 2, -3, 2);
  ExamineStack({7}, 1, 0, 1);
  ExamineStack({0, 3}, 2, 1, 0);
}

TEST_CASE("stack: shapes") {
  const auto infer = [](const std::string& axis, std::vector<TShape> in, TShape out) {
    std::vector<TShape> outs = {out}, aux;
    const bool known = TestRegistry()
                           .Create("stack", {{"num_args", format("{}", in.size())}, {"axis", axis}})
                           ->InferShape(&in, &outs, &aux);
    in.push_back(outs[0]);
    in.push_back(TShape{known});
    return in;
  };
  using Shapes = std::vector<TShape>;
  CHECK(infer("1", {{2, 3}, {2, 3}}, {}) == Shapes{{2, 3}, {2, 3}, {2, 2, 3}, TShape{1}});
  CHECK(infer("-1", {{2, -1}, {}}, {}) == Shapes{{2, -1}, {2, -1}, {2, -1, 2}, TShape{0}});
  CHECK(infer("0", {{}, {}}, {2, 4, 5}) == Shapes{{4, 5}, {4, 5}, {2, 4, 5}, TShape{1}});
  CHECK(infer("0", {{}, {}}, {}).back() == TShape{0});
  CHECK_THROWS_WITH(infer("0", {{2, 3}, {2, 4}}, {}),
                    "stack: arg1 has shape [2, 4], but [2, 3] was expected");
  CHECK_THROWS_WITH(infer("3", {{2, 3}, {2, 3}}, {}),
                    "stack: axis = 3 is out of range for an output with 3 axes; use -3 .. 2");
  CHECK_THROWS_WITH(infer("0", {{2, 3}, {2, 3}}, {3, 2, 3}), doctest::Contains("output has shape"));
}

}  // namespace
}  // namespace mxtrain::test
