// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

// Data [T, N, R], or [N, T, R] with axis 1.
struct Sizes {
  int64_t steps, batch, rest;
  int axis = 0;
  TShape Data() const {
    return axis == 0 ? TShape{steps, batch, rest} : TShape{batch, steps, rest};
  }
  size_t At(int64_t t, int64_t n, int64_t r) const {
    return static_cast<size_t>((axis == 0 ? t * batch + n : n * steps + t) * rest + r);
  }
};

// lengths: null without sequence_length.
OperatorCase SequenceCase(const std::string& op, const Sizes& s, const Generator& lengths,
                          Kwargs kwargs) {
  OperatorCase c;
  c.op = op;
  c.name = format("{} of {}, axis {}", op, s.Data().ToString(), s.axis);
  c.kwargs = std::move(kwargs);
  if (s.axis != 0) c.kwargs.emplace_back("axis", "1");
  c.shapes = {s.Data()};
  c.inputs = {Uniform(0, 9)};
  c.input_types = {DType::kUnknown, DType::kFloat32};
  if (lengths) {
    c.kwargs.emplace_back("use_sequence_length", "True");
    c.shapes.push_back(TShape{s.batch});
    c.inputs.push_back(lengths);
  } else {
    c.input_types.pop_back();
  }
  double value = 0;
  for (const auto& [key, text] : c.kwargs) {
    if (key == "value") value = std::stod(text);
  }
  c.forward = [=](const Arrays& in, const Arrays&) {
    Values y(op == "SequenceLast" ? static_cast<size_t>(s.batch * s.rest) : in[0].size());
    for (int64_t n = 0; n < s.batch; ++n) {
      int64_t length = s.steps;
      if (in.size() > 1 && std::isfinite(in[1][static_cast<size_t>(n)]))
        length =
            std::clamp<int64_t>(static_cast<int64_t>(in[1][static_cast<size_t>(n)]), 0, length);
      for (int64_t r = 0; r < s.rest; ++r) {
        if (op == "SequenceLast") {
          y[static_cast<size_t>(n * s.rest + r)] =
              in[0][s.At(std::max<int64_t>(length, 1) - 1, n, r)];
          continue;
        }
        for (int64_t t = 0; t < s.steps; ++t) {
          const bool inside = t < length;
          if (op == "SequenceMask") {
            y[s.At(t, n, r)] = inside ? in[0][s.At(t, n, r)] : value;
          } else {
            y[s.At(t, n, r)] = in[0][s.At(inside ? length - 1 - t : t, n, r)];
          }
        }
      }
    }
    return Arrays{y};
  };
  c.tolerance = {0, "copies"};
  c.must_accept = {"ref"};
  return c;
}

TEST_CASE("SequenceMask, SequenceLast and SequenceReverse") {
  const Generator lengths = Cycle({3, 1, 4, 0, 2.9, 9, -2});
  for (const char* op : {"SequenceMask", "SequenceLast", "SequenceReverse"}) {
    const bool mask = std::string(op) == "SequenceMask";
    for (const int axis : {0, 1}) {
      if (axis == 1 && std::string(op) == "SequenceReverse") continue;
      OperatorCase c = SequenceCase(op, {4, 7, 3, axis}, lengths, {});
      c.types = {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBfloat16,
                 DType::kUint8,   DType::kInt32,   DType::kInt64};
      RunCase(c);
      c.types = {DType::kFloat32};
      c.input_types[1] = DType::kInt32;
      RunCase(c);
      RunCase(SequenceCase(op, {4, 3, 2, axis}, nullptr, {}));
      RunCase(SequenceCase(op, {1, 1, 1, axis}, Constant(1), {}));
      RunCase(SequenceCase(op, {3, 0, 2, axis}, lengths, {}));
      RunCase(SequenceCase(op, {3, 2, 0, axis}, lengths, {}));
      // Rows for teams, and several threads.
      RunCase(SequenceCase(op, {5, 70, 131, axis}, lengths, {}));
      if (mask) RunCase(SequenceCase(op, {4, 7, 3, axis}, lengths, {{"value", "-1.5"}}));
    }
  }
}

TEST_CASE("SequenceMask, SequenceLast and SequenceReverse: shapes and refusals") {
  const auto infer = [](const char* op, Kwargs kwargs, std::vector<TShape> in, TShape output) {
    std::vector<TShape> out = {output}, aux;
    TestRegistry().Create(op, kwargs)->InferShape(&in, &out, &aux);
    in.push_back(out[0]);
    return in;
  };
  const Kwargs with = {{"use_sequence_length", "1"}};
  CHECK(infer("SequenceLast", with, {TShape{5, -1, 4}, TShape{}}, TShape{3, -1}) ==
        std::vector{TShape{5, 3, 4}, TShape{3}, TShape{3, 4}});
  CHECK(infer("SequenceMask", {{"use_sequence_length", "1"}, {"axis", "1"}}, {TShape{}, TShape{3}},
              TShape{-1, 5}) == std::vector{TShape{3, 5}, TShape{3}, TShape{3, 5}});
  CHECK_THROWS_WITH(infer("SequenceReverse", with, {TShape{5, 3}, TShape{4}}, TShape{}),
                    "SequenceReverse: sequence_length has shape [4], but [3] was expected");
  CHECK_THROWS_WITH(infer("SequenceMask", {}, {TShape{5}}, TShape{}),
                    "SequenceMask: data has shape [5]; expected steps and a batch, [T, N, ...]");
  CHECK_THROWS_WITH(infer("SequenceLast", {}, {TShape{0, 5}}, TShape{}),
                    "SequenceLast: data has shape [0, 5], which has no steps");
  CHECK_THROWS_AS(TestRegistry().Create("SequenceReverse", {{"axis", "1"}}), Error);
  CHECK(TestRegistry().Create("SequenceMask", {})->ListArguments() ==
        std::vector<std::string>{"data"});
  CHECK(!TestRegistry().Create("SequenceMask", with)->HasGradient(1));
}

}  // namespace
}  // namespace mxtrain::test
