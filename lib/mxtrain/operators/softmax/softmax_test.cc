// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "mxtrain/base/format.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const std::vector<const char*> kOperators = {"softmax", "log_softmax", "softmin"};

struct SoftmaxOptions {
  int axis = -1;
  double temperature = 1;
  bool use_length = false;
};

// By the definition, with the largest exponent moved to 0.
Arrays Reference(const std::string& op, const TShape& shape, const SoftmaxOptions& options,
                 const Arrays& in) {
  const int axis = options.axis < 0 ? options.axis + shape.ndim() : options.axis;
  const int64_t outer = shape.Product(0, axis), classes = shape[axis],
                inner = shape.Product(axis + 1, shape.ndim());
  Values y(in[0].size());
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      const double length = options.use_length ? in[1][o * inner + i] : kInfinity;
      const auto exponent = [&](int64_t k) {
        return (op == "softmin" ? -1 : 1) * in[0][(o * classes + k) * inner + i] /
               options.temperature;
      };
      int64_t count = 0;
      while (count < classes && static_cast<double>(count + 1) <= length) ++count;
      double most = -kInfinity, sum = 0;
      for (int64_t k = 0; k < count; ++k) most = std::max(most, exponent(k));
      for (int64_t k = 0; k < count; ++k) sum += std::exp(exponent(k) - most);
      for (int64_t k = 0; k < count; ++k) {
        y[(o * classes + k) * inner + i] = op == "log_softmax" ? exponent(k) - most - std::log(sum)
                                                               : std::exp(exponent(k) - most) / sum;
      }
    }
  }
  return {y};
}

OperatorCase SoftmaxCase(const std::string& op, const TShape& shape,
                         const SoftmaxOptions& options) {
  OperatorCase c;
  c.name = format("{} {} along {}, temperature {}{}", op, shape.ToString(), options.axis,
                  options.temperature, options.use_length ? ", lengths" : "");
  c.op = op;
  c.kwargs = {{"axis", std::to_string(options.axis)}};
  if (options.temperature != 1)
    c.kwargs.emplace_back("temperature", format("{}", options.temperature));
  c.shapes = {shape};
  c.inputs = {Uniform(-3, 3)};
  c.forward = [=](const Arrays& in, const Arrays&) { return Reference(op, shape, options, in); };
  c.types = kAllFloatingTypes;
  c.tolerance = {16, "exponentials and their sum"};
  return c;
}

// One that the vector kernel takes, in both of its types.
void RunVectors(OperatorCase c) {
  c.must_accept = {"simd"};
  const CaseReport report = RunCase(c);
  CHECK(std::all_of(report.kernels.begin(), report.kernels.end(), [](const KernelOutcome& o) {
    return o.kernel != "simd" || o.type != DType::kBfloat16 || o.refusal.empty();
  }));
}

TEST_CASE("softmax, log_softmax and softmin along the last axis") {
  for (const char* op : kOperators) {
    for (const TShape& shape : {TShape{5, 7}, TShape{1, 1}, TShape{4, 1}, TShape{9}, TShape{3, 16},
                                TShape{2, 3, 33}, TShape{2, 150}}) {
      RunVectors(SoftmaxCase(op, shape, {}));
    }
    for (const TShape& shape : {TShape{0, 3}, TShape{3, 0}, TShape{2, 0, 2}})
      RunCase(SoftmaxCase(op, shape, {}));
  }
}

TEST_CASE("softmax, log_softmax and softmin along other axes") {
  for (const char* op : kOperators) {
    RunVectors(SoftmaxCase(op, {3, 2, 5}, {.axis = 1}));
    RunVectors(SoftmaxCase(op, {2, 5, 3, 7}, {.axis = 1}));
    RunVectors(SoftmaxCase(op, {4, 70}, {.axis = 0}));
    RunVectors(SoftmaxCase(op, {2, 3, 41}, {.axis = -2}));
    RunVectors(SoftmaxCase(op, {7, 1}, {.axis = 0}));
    RunVectors(SoftmaxCase(op, {1, 5, 2}, {.axis = 1}));
  }
  RunCase(SoftmaxCase("softmax", {2, 0, 3}, {.axis = 1}));
}

TEST_CASE("softmax, log_softmax and softmin: pieces for several threads") {
  for (const char* op : kOperators) {
    OperatorCase rows = SoftmaxCase(op, {301, 17}, {}),
                 columns = SoftmaxCase(op, {3, 10, 131}, {.axis = 1});
    rows.types = columns.types = {DType::kFloat32, DType::kBfloat16};
    RunVectors(rows);
    RunVectors(columns);
  }
}

TEST_CASE("softmax, log_softmax and softmin: temperature") {
  for (const char* op : kOperators) {
    for (const double temperature : {0.25, 3.0}) {
      RunVectors(SoftmaxCase(op, {3, 19}, {.temperature = temperature}));
      RunVectors(SoftmaxCase(op, {2, 5, 18}, {.axis = 1, .temperature = temperature}));
    }
  }
}

TEST_CASE("softmax, log_softmax and softmin: lengths") {
  for (const char* op : kOperators) {
    for (const DType type : {DType::kUnknown, DType::kInt32, DType::kInt64, DType::kFloat32}) {
      OperatorCase c = SoftmaxCase(op, {8, 21}, {.temperature = 2, .use_length = true});
      c.kwargs.emplace_back("use_length", "True");
      c.shapes.push_back(TShape{8});
      c.inputs.push_back(Cycle({3, 0, 21, 1, 17, 90, 16, -2}));
      c.input_types = {DType::kUnknown, type};
      RunVectors(c);
    }
    OperatorCase fraction = SoftmaxCase(op, {2, 3}, {.use_length = true});
    fraction.kwargs.emplace_back("use_length", "True");
    fraction.shapes.push_back(TShape{2});
    fraction.inputs.push_back(Cycle({2.5, 0.5}));
    RunVectors(fraction);

    OperatorCase middle = SoftmaxCase(op, {2, 4, 3}, {.axis = 1, .use_length = true});
    middle.kwargs.emplace_back("use_length", "True");
    middle.shapes.push_back(TShape{2, 3});
    middle.inputs.push_back(Cycle({0, 1, 2, 3, 4, 5}));
    RunCase(middle);

    OperatorCase one = SoftmaxCase(op, {5}, {.use_length = true});
    one.kwargs.emplace_back("use_length", "True");
    one.shapes.push_back(TShape{1});
    one.inputs.push_back(Constant(3));
    RunVectors(one);
  }
}

TEST_CASE("softmax, log_softmax and softmin: an output of another type") {
  const auto run = [](const char* op, DType from, DType to, bool backward) {
    OperatorCase c = SoftmaxCase(op, {3, 5}, {});
    c.name += format(", {} to {}", NameOf(from), NameOf(to));
    c.kwargs.emplace_back("dtype", NameOf(to));
    c.types = {from};
    c.backward = backward;
    RunCase(c);
  };
  for (const char* op : kOperators) {
    run(op, DType::kFloat32, DType::kFloat32, true);
    run(op, DType::kFloat32, DType::kFloat64, true);
    run(op, DType::kFloat16, DType::kFloat32, true);
    run(op, DType::kBfloat16, DType::kFloat32, true);
    // The gradient is that of the rounded output.
    run(op, DType::kFloat64, DType::kFloat16, false);
    run(op, DType::kFloat32, DType::kBfloat16, false);
  }
}

// Rows with numbers that are not finite, at places of whole vectors and of parts.
TEST_CASE("softmax, log_softmax and softmin: infinities, NaN and large numbers") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto rows = [=](int64_t width) {
    return [=](int64_t size, uint64_t seed) {
      Values x = Uniform(-3, 3)(size, seed);
      const auto at = [&](int64_t row, int64_t k) -> double& { return x[row * width + k]; };
      at(0, 0) = nan;
      at(1, width - 1) = nan;
      at(2, width / 2) = nan;
      at(3, 0) = kInfinity;
      at(4, 1) = -kInfinity;
      for (int64_t k = 0; k < width; ++k) at(5, k) = -kInfinity;
      at(6, width - 1) = 300;
      at(6, 2) = -300;
      at(7, 1) = 30000;
      return x;
    };
  };
  for (const char* op : kOperators) {
    for (const int64_t width : {5, 45, 80}) {
      OperatorCase c = SoftmaxCase(op, {8, width}, {});
      c.inputs = {rows(width)};
      c.backward = false;
      RunVectors(c);
      // The same numbers as columns.
      OperatorCase columns = SoftmaxCase(op, {width, 8}, {.axis = 0});
      columns.inputs = {[=](int64_t size, uint64_t seed) {
        const Values x = rows(width)(size, seed);
        Values y(x.size());
        for (int64_t row = 0; row < 8; ++row) {
          for (int64_t k = 0; k < width; ++k) y[k * 8 + row] = x[row * width + k];
        }
        return y;
      }};
      columns.backward = false;
      RunVectors(columns);
    }
  }
}

TEST_CASE("softmax: parameters, shapes and types") {
  const auto create = [](const Kwargs& kwargs) { return TestRegistry().Create("softmax", kwargs); };
  CHECK_THROWS_WITH_AS(create({{"temperature", "0"}}),
                       doctest::Contains("softmax: temperature = '0'"), Error);
  CHECK_THROWS_WITH_AS(
      create({{"dtype", "int32"}}),
      "softmax: dtype = int32, but the output can be float32, float64, float16 or bfloat16", Error);

  std::vector<TShape> in = {TShape{2, 3}}, out(1), aux;
  CHECK_THROWS_WITH_AS(create({{"axis", "2"}})->InferShape(&in, &out, &aux),
                       "softmax: axis 2 is out of range for shape [2, 3]", Error);
  const auto with_length = create({{"use_length", "True"}, {"axis", "1"}});
  CHECK(with_length->ListArguments() == std::vector<std::string>{"data", "length"});
  in = {TShape{4, 7, TShape::kUnknown}, TShape{4, 5}}, out = {TShape()};
  CHECK(with_length->InferShape(&in, &out, &aux));
  CHECK(in[0] == TShape{4, 7, 5});
  CHECK(out[0] == TShape{4, 7, 5});
  in = {TShape{4, 7, 5}, TShape{4, 6}};
  CHECK_THROWS_WITH_AS(with_length->InferShape(&in, &out, &aux),
                       "softmax: length has shape [4, 6], but [4, 5] was expected", Error);

  std::vector<DType> in_types = {DType::kUnknown}, out_types = {DType::kUnknown}, aux_types;
  CHECK(create({{"dtype", "float16"}})->InferType(&in_types, &out_types, &aux_types));
  CHECK(in_types[0] == DType::kFloat16);
  in_types = {DType::kFloat32}, out_types = {DType::kFloat64};
  CHECK_THROWS_WITH_AS(create({})->InferType(&in_types, &out_types, &aux_types),
                       "softmax: output is float64, but float32 was expected", Error);
}

}  // namespace
}  // namespace mxtrain::test
