// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "tests/support/case_parts.h"
#include "tests/support/moved_gradient.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

// Element (i, j, k) of `out` is element (place(0, i), place(1, j), place(2, k)) of `data`, where
// both are seen as three axes.
void ExamineTile(const char* op, const Kwargs& kwargs, const TShape& shape, const TShape& data,
                 const TShape& out, const std::function<int64_t(int, int64_t)>& place) {
  OperatorCase c;
  c.op = op;
  c.name = format("{} of {} to {}", op, shape.ToString(), out.ToString());
  c.kwargs = kwargs;
  c.shapes = {shape};
  c.inputs = {Uniform(-2, 2)};
  c.forward = [=](const Arrays& in, const Arrays&) {
    Values y;
    for (int64_t i = 0; i < out[0]; ++i) {
      for (int64_t j = 0; j < out[1]; ++j) {
        for (int64_t k = 0; k < out[2]; ++k) {
          y.push_back(in[0][static_cast<size_t>((place(0, i) * data[1] + place(1, j)) * data[2] +
                                                place(2, k))]);
        }
      }
    }
    return Arrays{y};
  };
  c.types = kAllFloatingTypes;
  c.tolerance = {64, "copies; sums of up to 320 head gradients"};
  c.must_accept = {"ref"};
  if (out.Size() > kLarge) {
    c.types = {DType::kFloat32};
    UseMovedGradient(&c);
  }
  RunCase(c);
}

void Tile(const std::string& reps, const TShape& shape, const TShape& data, const TShape& out) {
  ExamineTile("tile", {{"reps", reps}}, shape, data, out,
              [=](int axis, int64_t index) { return index % data[axis]; });
}

TEST_CASE("tile") {
  Tile("(1, 2, 3)", {2, 3, 4}, {2, 3, 4}, {2, 6, 12});
  Tile("(2,)", {2, 3}, {1, 2, 3}, {1, 2, 6});
  Tile("(3, 2, 2)", {5}, {1, 1, 5}, {3, 2, 10});
  Tile("3", {2, 3, 1}, {2, 3, 1}, {2, 3, 3});
  Tile("()", {2, 3, 4}, {2, 3, 4}, {2, 3, 4});
  Tile("(2, 1, 2)", {3, 0, 2}, {3, 0, 2}, {6, 0, 4});
  Tile("(320,)", {1, 1, 1}, {1, 1, 1}, {1, 1, 320});
  Tile("(4, 5, 2)", {7, 11, 13}, {7, 11, 13}, {28, 55, 26});  // several threads
}

void ExamineRepeat(int64_t repeats, int at, const TShape& shape, const TShape& data,
                   const TShape& out, const Kwargs& axis) {
  Kwargs kwargs = axis;
  kwargs.emplace_back("repeats", format("{}", repeats));
  ExamineTile("repeat", kwargs, shape, data, out,
              [=](int k, int64_t index) { return k == at ? index / repeats : index; });
}

TEST_CASE("repeat") {
  ExamineRepeat(2, 1, {2, 3, 4}, {2, 3, 4}, {2, 6, 4}, {{"axis", "1"}});
  ExamineRepeat(3, 0, {2, 3, 4}, {2, 3, 4}, {6, 3, 4}, {{"axis", "0"}});
  ExamineRepeat(2, 2, {2, 3, 4}, {2, 3, 4}, {2, 3, 8}, {{"axis", "-1"}});
  ExamineRepeat(40, 2, {2, 3, 5}, {2, 3, 5}, {2, 3, 200}, {{"axis", "-1"}});
  ExamineRepeat(2, 2, {2, 3}, {1, 1, 6}, {1, 1, 12}, {});
  ExamineRepeat(1, 2, {2, 3}, {1, 1, 6}, {1, 1, 6}, {{"axis", "None"}});
  ExamineRepeat(2, 1, {2, 0, 4}, {2, 0, 4}, {2, 0, 4}, {{"axis", "1"}});
  ExamineRepeat(3, 1, {5, 17, 160}, {5, 17, 160}, {5, 51, 160},
                {{"axis", "1"}});  // several threads
}

TEST_CASE("tile and repeat: shapes") {
  const auto infer = [](const char* op, const Kwargs& kwargs, const TShape& shape) {
    std::vector<TShape> in = {shape}, out(1), aux;
    TestRegistry().Create(op, kwargs)->InferShape(&in, &out, &aux);
    return out[0];
  };
  CHECK(infer("tile", {{"reps", "(2, 3)"}}, {4}) == TShape{2, 12});
  CHECK(infer("repeat", {{"repeats", "2"}}, {3, 4}) == TShape{24});
  CHECK_THROWS_WITH(infer("tile", {{"reps", "(2, 0)"}}, {4}),
                    "tile: reps = (2, 0) must be at least 1 each");
  CHECK_THROWS_WITH(infer("tile", {{"reps", "9000000000000000000"}}, {4}),
                    doctest::Contains("too many elements"));
  CHECK_THROWS_WITH(infer("repeat", {{"repeats", "0"}}, {4}), doctest::Contains("out of range"));
  CHECK_THROWS_WITH(infer("repeat", {{"repeats", "2"}, {"axis", "2"}}, {3, 4}),
                    "repeat: axis 2 is out of range for shape [3, 4]");
  CHECK(TestRegistry().Create("tile", {{"reps", "(1, 1)"}})->ForwardIdentityOption().size() == 1);
  CHECK(TestRegistry().Create("tile", {{"reps", "(1, 2)"}})->ForwardIdentityOption().empty());
}

}  // namespace
}  // namespace mxtrain::test
