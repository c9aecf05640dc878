// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

#include "mxtrain/base/format.h"
#include "tests/support/case_parts.h"
#include "tests/support/moved_gradient.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

// Of every axis the elements before and after.
using Widths = std::vector<std::pair<int64_t, int64_t>>;

Kwargs KwargsOf(const std::string& mode, const Widths& widths) {
  std::vector<int64_t> numbers;
  for (const auto& [before, after] : widths) numbers.insert(numbers.end(), {before, after});
  return {{"mode", mode}, {"pad_width", format("({})", join(numbers, ", "))}};
}

// The index of the data at index `at` of an extended axis; -1: the constant.
int64_t Source(const std::string& mode, int64_t at, int64_t before, int64_t length) {
  int64_t i = at - before;
  if (i >= 0 && i < length) return i;
  if (mode == "constant") return -1;
  if (mode == "edge") return std::clamp<int64_t>(i, 0, length - 1);
  return i < 0 ? -i : 2 * (length - 1) - i;
}

// Any rank: the places of the output are counted up like the digits of a number.
Values Padded(const std::string& mode, const Values& x, const TShape& shape, const Widths& widths,
              double constant) {
  int64_t size = 1;
  for (int i = 0; i < shape.ndim(); ++i) {
    const auto& [before, after] = widths[static_cast<size_t>(i)];
    size *= shape[i] + before + after;
  }
  Values y;
  for (int64_t at = 0; at < size; ++at) {
    int64_t rest = at, place = 0, step = 1;
    bool inside = true;
    for (int i = shape.ndim() - 1; i >= 0; --i) {
      const auto& [before, after] = widths[static_cast<size_t>(i)];
      const int64_t length = shape[i] + before + after;
      const int64_t source = Source(mode, rest % length, before, shape[i]);
      inside = inside && source >= 0;
      place += source * step;
      step *= shape[i];
      rest /= length;
    }
    y.push_back(inside ? x[static_cast<size_t>(place)] : constant);
  }
  return y;
}

void ExaminePad(const std::string& mode, const TShape& shape, const Widths& widths,
                double constant = 0) {
  OperatorCase c;
  c.op = "Pad";
  c.kwargs = KwargsOf(mode, widths);
  c.name = format("Pad {} of {} by {}", mode, shape.ToString(), c.kwargs[1].second);
  if (constant != 0) c.kwargs.emplace_back("constant_value", format("{}", constant));
  c.shapes = {shape};
  c.inputs = {Uniform(-2, 2)};
  c.forward = [=](const Arrays& in, const Arrays&) {
    return Arrays{Padded(mode, in[0], shape, widths, constant)};
  };
  c.types = kAllFloatingTypes;
  c.tolerance = {32, "copies; sums of up to 60 head gradients"};
  c.must_accept = {"ref"};
  if (shape.Size() > kLarge) {
    c.types = {DType::kFloat32};
    UseMovedGradient(&c);
  }
  RunCase(c);
}

TEST_CASE("Pad with a constant") {
  ExaminePad("constant", {2, 3, 4, 5}, {{0, 0}, {0, 0}, {1, 2}, {3, 1}});
  ExaminePad("constant", {1, 2, 3, 1}, {{0, 0}, {0, 0}, {1, 1}, {1, 1}}, 1.5);
  ExaminePad("constant", {1, 2, 3, 2, 4}, {{0, 0}, {0, 0}, {1, 0}, {0, 1}, {2, 2}}, -0.25);
  ExaminePad("constant", {2, 3, 4, 5}, {{0, 0}, {0, 0}, {0, 0}, {0, 0}}, 7);
  ExaminePad("constant", {3, 2}, {{1, 1}, {0, 2}}, 2);
  ExaminePad("constant", {2, 0, 3}, {{0, 0}, {1, 1}, {1, 0}}, 3);
  ExaminePad("constant", {0, 2, 3}, {{0, 0}, {0, 0}, {1, 1}}, 3);
  ExaminePad("constant", {3, 2, 71, 90}, {{0, 0}, {0, 0}, {1, 1}, {2, 2}}, 0.5);  // several threads
}

TEST_CASE("Pad with edges") {
  ExaminePad("edge", {2, 3, 4, 5}, {{0, 0}, {0, 0}, {1, 2}, {3, 1}});
  ExaminePad("edge", {1, 2, 1, 3}, {{0, 0}, {0, 0}, {4, 2}, {1, 7}});
  ExaminePad("edge", {1, 2, 3, 2, 4}, {{0, 0}, {0, 0}, {1, 0}, {2, 1}, {2, 2}});
  ExaminePad("edge", {3}, {{2, 40}});
  ExaminePad("edge", {0, 2, 3}, {{0, 0}, {1, 1}, {1, 1}});
  ExaminePad("edge", {2, 2, 91, 100}, {{0, 0}, {0, 0}, {1, 1}, {1, 1}});  // several threads
}

TEST_CASE("Pad by reflection") {
  ExaminePad("reflect", {2, 3, 4, 5}, {{0, 0}, {0, 0}, {1, 2}, {3, 1}});
  ExaminePad("reflect", {1, 2, 3, 4}, {{0, 0}, {0, 0}, {2, 2}, {3, 3}});
  ExaminePad("reflect", {1, 2, 3, 2, 4}, {{0, 0}, {0, 0}, {1, 0}, {1, 1}, {2, 2}});
  ExaminePad("reflect", {2}, {{1, 1}});
  ExaminePad("reflect", {0, 2, 3}, {{0, 0}, {1, 1}, {1, 1}});
}

TEST_CASE("Pad along five axes and more") {
  const Widths five = {{1, 0}, {0, 1}, {1, 1}, {1, 0}, {1, 1}};
  for (const char* mode : {"constant", "edge", "reflect"})
    ExaminePad(mode, {2, 2, 3, 2, 3}, five, mode == std::string("constant") ? 0.5 : 0);
  const Widths six = {{1, 1}, {0, 1}, {1, 0}, {0, 1}, {1, 1}, {0, 1}};
  for (const char* mode : {"constant", "edge", "reflect"})
    ExaminePad(mode, {2, 2, 2, 2, 2, 2}, six);
}

TEST_CASE("Pad moves elements of every type") {
  OperatorCase c;
  c.op = c.name = "Pad";
  c.kwargs = {{"mode", "constant"}, {"pad_width", "(1, 0, 0, 1)"}, {"constant_value", "9"}};
  c.shapes = {TShape{1, 2}};
  c.inputs = {Cycle({1, 2})};
  c.forward = [](const Arrays&, const Arrays&) { return Arrays{{9, 9, 9, 1, 2, 9}}; };
  c.types = {DType::kUint8, DType::kInt32, DType::kInt64};
  c.tolerance = {0, "a copy"};
  c.backward = false;
  RunCase(c);
}

TEST_CASE("Pad: infinite constants, for maxima") {
  OperatorCase c;
  c.op = c.name = "pad";
  c.kwargs = {{"mode", "constant"}, {"pad_width", "(1, 0)"}, {"constant_value", "-inf"}};
  c.shapes = {TShape{2}};
  c.inputs = {Cycle({1, 2})};
  c.forward = [](const Arrays&, const Arrays&) {
    return Arrays{{-std::numeric_limits<double>::infinity(), 1, 2}};
  };
  c.tolerance = {0, "a copy"};
  c.backward = false;
  RunCase(c);
}

TEST_CASE("Pad: widths") {
  const auto infer = [](const std::string& mode, const std::string& widths, const TShape& shape) {
    std::vector<TShape> in = {shape}, out(1), aux;
    TestRegistry()
        .Create("Pad", {{"mode", mode}, {"pad_width", widths}})
        ->InferShape(&in, &out, &aux);
    return out[0];
  };
  CHECK(infer("edge", "(0, 0, 1, 2)", {2, 3}) == TShape{2, 6});
  CHECK_THROWS_WITH(infer("edge", "(0, 0, 1, 2)", {2, 3, 4}),
                    "Pad: pad_width = (0, 0, 1, 2) must have two numbers for each of the 3 axes of "
                    "data of shape [2, 3, 4]");
  CHECK_THROWS_WITH(infer("edge", "(1, 2, 3)", {2}),
                    "Pad: pad_width = (1, 2, 3) must be two whole numbers for every axis");
  CHECK_THROWS_WITH(infer("edge", "(1, 0.5)", {2}),
                    "Pad: pad_width = (1, 0.5) must be two whole numbers for every axis");
  CHECK_THROWS_WITH(infer("edge", "(1, -2)", {2}), doctest::Contains("out of range"));
  CHECK_THROWS_WITH(infer("reflect", "(0, 3)", {3}),
                    "Pad: mode reflect cannot add 3 elements to axis 0 of data of shape [3]; at "
                    "most 2");
  CHECK_THROWS_WITH(
      infer("edge", "(1, 0)", {0}),
      "Pad: mode edge cannot add 1 element to axis 0 of data of shape [0]; at most 0");
  CHECK_THROWS_WITH(infer("mirror", "(0, 3)", {3}), doctest::Contains("constant, edge, reflect"));
}

}  // namespace
}  // namespace mxtrain::test
