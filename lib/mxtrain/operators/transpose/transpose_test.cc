// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "tests/support/case_parts.h"
#include "tests/support/moved_gradient.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

// Every element by definition: the index of the output along axis i is that of the data along axis
// order[i].
Values Permuted(const Values& x, const TShape& shape, const std::vector<int>& order) {
  Values y(x.size());
  for (size_t at = 0; at < x.size(); ++at) {
    std::vector<int64_t> index(order.size());
    int64_t rest = static_cast<int64_t>(at);
    for (size_t i = order.size(); i-- > 0; rest /= shape[static_cast<int>(i)])
      index[i] = rest % shape[static_cast<int>(i)];
    int64_t place = 0;
    for (const int axis : order) place = place * shape[axis] + index[static_cast<size_t>(axis)];
    y[static_cast<size_t>(place)] = x[at];
  }
  return y;
}

void ExamineTranspose(const std::string& op, const Kwargs& kwargs, const TShape& shape,
                      const std::vector<int>& order) {
  OperatorCase c;
  c.op = op;
  c.name = format("{} of {}", op, shape.ToString());
  c.kwargs = kwargs;
  c.shapes = {shape};
  c.inputs = {Uniform(-2, 2)};
  c.forward = [=](const Arrays& in, const Arrays&) {
    return Arrays{Permuted(in[0], shape, order)};
  };
  c.types = kAllFloatingTypes;
  c.tolerance = {0, "a copy"};
  c.must_accept = {"ref"};
  if (shape.Size() > kLarge) {
    c.types = {DType::kFloat32};
    UseMovedGradient(&c);
  }
  RunCase(c);
  std::vector<TShape> in = {shape}, out(1), aux;
  CHECK(TestRegistry().Create(op, kwargs)->InferShape(&in, &out, &aux));
  TShape expected = shape;
  for (int i = 0; i < shape.ndim(); ++i) expected[i] = shape[order[static_cast<size_t>(i)]];
  CHECK(out[0] == expected);
}

TEST_CASE("transpose and SwapAxis") {
  ExamineTranspose("transpose", {}, {3, 5}, {1, 0});
  ExamineTranspose("transpose", {}, {2, 3, 4, 5}, {3, 2, 1, 0});
  ExamineTranspose("transpose", {{"axes", "(0, 2, 3, 1)"}}, {2, 7, 3, 5}, {0, 2, 3, 1});
  ExamineTranspose("transpose", {{"axes", "(0, -1, 1)"}}, {2, 1, 5}, {0, 2, 1});
  ExamineTranspose("transpose", {{"axes", "(1, 2, 0)"}}, {3, 0, 2}, {1, 2, 0});
  ExamineTranspose("transpose", {{"axes", "(0, 1)"}}, {1, 1}, {0, 1});
  ExamineTranspose("SwapAxis", {{"dim1", "0"}, {"dim2", "2"}}, {2, 3, 4}, {2, 1, 0});
  ExamineTranspose("SwapAxis", {{"dim1", "-1"}, {"dim2", "1"}}, {2, 3, 4, 5}, {0, 3, 2, 1});
  ExamineTranspose("swapaxes", {}, {2, 3}, {0, 1});
  // Blocks, whole and not, several tiles, and more than one thread.
  ExamineTranspose("transpose", {}, {37, 150}, {1, 0});
  ExamineTranspose("transpose", {}, {130, 260}, {1, 0});
  ExamineTranspose("transpose", {{"axes", "(0, 2, 1)"}}, {5, 70, 33}, {0, 2, 1});
  ExamineTranspose("transpose", {{"axes", "(2, 0, 1, 3)"}}, {9, 3, 5, 2}, {2, 0, 1, 3});
  ExamineTranspose("transpose", {{"axes", "(0, 1, 2)"}}, {2, 3, 4}, {0, 1, 2});
}

// What follows from the output, and which parameters make an alias.
TEST_CASE("transpose: partial shapes and identities") {
  const auto property = TestRegistry().Create("transpose", {{"axes", "(2, 0, 1)"}});
  std::vector<TShape> in = {TShape{2, -1, 4}}, out = {TShape{-1, -1, 3}}, aux;
  CHECK(property->InferShape(&in, &out, &aux));
  CHECK(in[0] == TShape{2, 3, 4});
  CHECK(out[0] == TShape{4, 2, 3});
  in = {TShape{}}, out = {TShape{4, 2, 3}};
  CHECK(property->InferShape(&in, &out, &aux));
  CHECK(in[0] == TShape{2, 3, 4});
  in = {TShape{}}, out = {TShape{}};
  CHECK(!property->InferShape(&in, &out, &aux));
  const auto aliases = [](const char* op, const Kwargs& kwargs) {
    return !TestRegistry().Create(op, kwargs)->ForwardIdentityOption().empty();
  };
  CHECK(aliases("transpose", {{"axes", "(0, 1)"}}));
  CHECK(!aliases("transpose", {{"axes", "(1, 0)"}}));
  CHECK(!aliases("transpose", {}));
  CHECK(aliases("SwapAxis", {}));
  CHECK(!aliases("SwapAxis", {{"dim2", "1"}}));
}

TEST_CASE("transpose moves elements of every type") {
  OperatorCase c;
  c.op = c.name = "transpose";
  c.shapes = {TShape{2, 3}};
  c.inputs = {Cycle({1, 2, 3, 4, 5, 6})};
  c.forward = [](const Arrays&, const Arrays&) { return Arrays{{1, 4, 2, 5, 3, 6}}; };
  c.types = {DType::kUint8, DType::kInt32, DType::kInt64};
  c.tolerance = {0, "a copy"};
  c.backward = false;
  RunCase(c);
}

TEST_CASE("transpose: axes that are not a permutation") {
  const auto infer = [](const char* op, const Kwargs& kwargs) {
    std::vector<TShape> in = {TShape{2, 3, 4}}, out(1), aux;
    TestRegistry().Create(op, kwargs)->InferShape(&in, &out, &aux);
  };
  CHECK_THROWS_WITH(infer("transpose", {{"axes", "(0, 1)"}}),
                    "transpose: axes = (0, 1) must contain each axis of shape [2, 3, 4] once");
  CHECK_THROWS_WITH(infer("transpose", {{"axes", "(0, 1, -2)"}}),
                    "transpose: axes = (0, 1, -2) must contain each axis of shape [2, 3, 4] once");
  CHECK_THROWS_WITH(infer("transpose", {{"axes", "(0, 1, 3)"}}),
                    "transpose: axis 3 is out of range for shape [2, 3, 4]");
  CHECK_THROWS_WITH(infer("SwapAxis", {{"dim1", "3"}}),
                    "SwapAxis: axis 3 is out of range for shape [2, 3, 4]");
}

}  // namespace
}  // namespace mxtrain::test
