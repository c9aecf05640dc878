// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "tests/support/case_parts.h"
#include "tests/support/moved_gradient.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

// [a, b, c], reversed along the marked axes, by definition.
void ExamineReverse(const char* op, const std::string& axis, const TShape& shape,
                    const std::vector<bool>& reversed) {
  OperatorCase c;
  c.op = op;
  c.name = format("{} of {} along {}", op, shape.ToString(), axis);
  c.kwargs = {{"axis", axis}};
  c.shapes = {shape};
  c.inputs = {Uniform(-2, 2)};
  c.forward = [=](const Arrays& in, const Arrays&) {
    const auto at = [&](int k, int64_t index) {
      return reversed[static_cast<size_t>(k)] ? shape[k] - 1 - index : index;
    };
    Values y;
    for (int64_t i = 0; i < shape[0]; ++i) {
      for (int64_t j = 0; j < shape[1]; ++j) {
        for (int64_t k = 0; k < shape[2]; ++k) {
          y.push_back(
              in[0][static_cast<size_t>((at(0, i) * shape[1] + at(1, j)) * shape[2] + at(2, k))]);
        }
      }
    }
    return Arrays{y};
  };
  c.types = kAllFloatingTypes;
  c.tolerance = {0, "a copy"};
  c.must_accept = {"ref"};
  if (shape.Size() > kLarge) {
    c.types = {DType::kFloat32};
    UseMovedGradient(&c);
  }
  RunCase(c);
}

TEST_CASE("reverse") {
  ExamineReverse("reverse", "1", {2, 4, 3}, {false, true, false});
  ExamineReverse("flip", "(0, -1)", {2, 2, 3}, {true, false, true});
  ExamineReverse("reverse", "(2,)", {3, 1, 67}, {false, false, true});
  ExamineReverse("reverse", "(0, 1, 2)", {3, 5, 7}, {true, true, true});
  ExamineReverse("reverse", "()", {2, 3, 1}, {false, false, false});
  ExamineReverse("reverse", "0", {0, 2, 2}, {true, false, false});
  ExamineReverse("reverse", "(0, 2)", {3, 41, 301}, {true, false, true});  // several threads
}

TEST_CASE("reverse: axes") {
  std::vector<TShape> in = {TShape{2, 4}}, out(1), aux;
  CHECK_THROWS_WITH(
      TestRegistry().Create("reverse", {{"axis", "(1, -1)"}})->InferShape(&in, &out, &aux),
      "reverse: axis -1 is repeated");
  CHECK_THROWS_WITH(TestRegistry().Create("reverse", {{"axis", "2"}})->InferShape(&in, &out, &aux),
                    "reverse: axis 2 is out of range for shape [2, 4]");
  CHECK(TestRegistry().Create("reverse", {{"axis", "()"}})->ForwardIdentityOption().size() == 1);
  CHECK(TestRegistry().Create("reverse", {{"axis", "0"}})->ForwardIdentityOption().empty());
}

}  // namespace
}  // namespace mxtrain::test
