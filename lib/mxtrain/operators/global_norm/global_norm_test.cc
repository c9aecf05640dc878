// SPDX-License-Identifier: Apache-2.0
// The references add and divide in double.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "mxtrain/operator/imperative.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(),
                 kNan = std::numeric_limits<double>::quiet_NaN();

OperatorCase SumCase(const std::vector<TShape>& shapes) {
  OperatorCase c;
  c.name = format("multi_sum_sq of {}, {} first", shapes.size(), shapes[0].ToString());
  c.op = "multi_sum_sq";
  c.kwargs = {{"num_arrays", std::to_string(shapes.size())}};
  c.shapes = shapes;
  c.inputs = {Uniform(-2, 2)};
  c.input_types.assign(shapes.size(), DType::kUnknown);
  c.forward = [](const Arrays& in, const Arrays&) {
    Values sums;
    for (const Values& x : in)
      sums.push_back(std::inner_product(x.begin(), x.end(), x.begin(), 0.0));
    return Arrays{sums};
  };
  c.backward = false;
  c.tolerance = {1000, "the order of 35001 terms"};
  return c;
}

TEST_CASE(
    "multi_sum_sq: arrays of any shapes, more than a table holds, of all floating types and of "
    "several") {
  for (const DType type : kAllFloatingTypes) {
    for (const std::vector<TShape>& shapes : {std::vector<TShape>{{1}},
                                              {{0}},
                                              {{3, 5, 2, 3}, {0, 2}, {35001}},
                                              {{8192}, {8193}, {16384}},
                                              std::vector<TShape>(400, TShape{2, 3})}) {
      OperatorCase c = SumCase(shapes);
      c.types = {type};
      c.input_types.assign(shapes.size(), type);
      RunCase(c);
    }
  }
  OperatorCase mixed = SumCase({{3, 4}, {9000}, {7}, {2, 3, 4, 5}});
  mixed.input_types = {DType::kFloat16, DType::kBfloat16, DType::kFloat64, DType::kFloat32};
  RunCase(mixed);
}

TEST_CASE(
    "multi_sum_sq: a non-finite value affects only its own sum, and long arrays do not overflow") {
  OperatorCase c = SumCase({{5}, {20000}, {3}, {2}});
  c.inputs = {Uniform(-2, 2), Cycle({1, -kInf, 2}), Cycle({kNan, 1}), Constant(1e30)};
  c.input_types.assign(4, DType::kFloat32);
  RunCase(c);
}

TEST_CASE("multi_sum_sq gives the same bits for any number of threads") {
  std::vector<std::vector<double>> results;
  for (const int threads : {1, 2, 3, 7}) {
    RuntimeOptions options;
    options.threads = threads;
    Runtime runtime(options, BuiltinOperators());
    std::vector<NDArray> arrays;
    for (const int64_t size : {100000, 5, 0, 33333}) {
      std::vector<float> values(static_cast<size_t>(size));
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = std::sin(static_cast<float>(i) + static_cast<float>(size));
      arrays.push_back(NDArray::FromVector(runtime, TShape{size}, values));
    }
    const NDArray sums = Invoke("multi_sum_sq", arrays)[0];
    std::vector<double>& result = results.emplace_back(4);
    sums.CopyToHost(result.data(), 4 * sizeof(double));
  }
  for (const auto& result : results) CHECK(result == results[0]);
}

// f min(1, max_norm / (|f| ||g||)) in the third of every four.
OperatorCase ClipNormCase(const TShape& scalars, const Values& sums, double factor,
                          double max_norm) {
  OperatorCase c;
  c.name = format("clip_global_norm {} factor {}, {} sums from {}, to {}", scalars.ToString(),
                  factor, sums.size(), sums[0], max_norm);
  c.op = "clip_global_norm";
  c.kwargs = {{"max_norm", format("{}", max_norm)}};
  c.shapes = {TShape{static_cast<int64_t>(sums.size())}, scalars};
  c.inputs = {Cycle(sums), Cycle({0.5, -2, factor, 7})};
  c.input_types = {DType::kFloat64, DType::kFloat32};
  c.forward = [=](const Arrays& in, const Arrays&) {
    Values out = in[1];
    const double norm =
        std::abs(factor) * std::sqrt(std::accumulate(in[0].begin(), in[0].end(), 0.0));
    for (size_t i = 2; i < out.size(); i += 4)
      out[i] *= std::isfinite(norm) ? std::min(1.0, max_norm / norm) : 1;
    return Arrays{out};
  };
  c.backward = false;
  c.types = {DType::kFloat32};
  c.tolerance = {2, "a product, rounded once"};
  return c;
}

TEST_CASE("clip_global_norm bounds the factor of every row") {
  for (const TShape& scalars : {TShape{4}, TShape{1, 4}, TShape{70, 4}}) {
    for (const double factor : {0.25, -0.25, 1.0}) {
      for (const double max_norm : {0.5, 100.0, 1e-30})
        RunCase(ClipNormCase(scalars, {9, 16, 0}, factor, max_norm));
    }
  }
  RunCase(ClipNormCase({3, 4}, Values(500, 4.0), 0.5, 3));
  RunCase(ClipNormCase({3, 4}, {1e60, 1e61}, 0.5, 3));
}

TEST_CASE(
    "clip_global_norm leaves a factor alone if the norm is not finite, and a factor of 0 always") {
  for (const double sum : {kInf, kNan}) {
    for (const double factor : {0.25, 0.0}) RunCase(ClipNormCase({2, 4}, {1, sum}, factor, 0.5));
  }
  OperatorCase zero = ClipNormCase({2, 4}, {9, 16}, 0, 0.5);
  zero.forward = [](const Arrays& in, const Arrays&) { return Arrays{in[1]}; };
  RunCase(zero);
}

TEST_CASE("invalid arguments") {
  const auto clip = TestRegistry().Create("clip_global_norm", {{"max_norm", "1"}});
  std::vector<DType> types = {DType::kFloat32, DType::kUnknown}, out_types(1, DType::kUnknown),
                     aux_types;
  CHECK_THROWS_WITH(clip->InferType(&types, &out_types, &aux_types),
                    "clip_global_norm: sums is float32, but float64 was expected");
  std::vector<TShape> shapes = {TShape{2}, TShape{2, 3}}, out(1), aux;
  CHECK_THROWS_WITH(
      clip->InferShape(&shapes, &out, &aux),
      "clip_global_norm: scalars has shape [2, 3], but its last axis must have length 4");
  CHECK_THROWS_WITH(TestRegistry().Create("clip_global_norm", {{"max_norm", "0"}}),
                    "clip_global_norm: max_norm must be positive");
  Runtime runtime{RuntimeOptions(), BuiltinOperators()};
  const NDArray numbers = NDArray::Zeros(runtime, TShape{3}, DType::kInt32);
  CHECK_THROWS_WITH_AS(Invoke("multi_sum_sq", {&numbers, 1}), doctest::Contains("int32"), Error);
}

}  // namespace
}  // namespace mxtrain::test
