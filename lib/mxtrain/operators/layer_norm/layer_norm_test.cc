// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <utility>

#include "mxtrain/base/format.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

// An array [outer, length, inner], normalized along its middle.
struct NormView {
  int64_t outer, length, inner;
};

// By the definition; with mean and standard deviation of each row.
Arrays Normalize(const NormView& v, const Values& x, bool centred, double eps) {
  Values y(x.size()), means, deviations;
  const double n = static_cast<double>(v.length);
  for (int64_t row = 0; row < v.outer * v.inner; ++row) {
    const int64_t first = row / v.inner * v.length * v.inner + row % v.inner;
    double sum = 0, squares = 0;
    for (int64_t k = 0; k < v.length; ++k) sum += centred ? x[first + k * v.inner] : 0;
    const double mean = sum / n;
    for (int64_t k = 0; k < v.length; ++k) {
      const double distance = x[first + k * v.inner] - mean;
      squares += distance * distance;
    }
    means.push_back(mean);
    deviations.push_back(std::sqrt(squares / n + eps));
    for (int64_t k = 0; k < v.length; ++k)
      y[first + k * v.inner] = (x[first + k * v.inner] - mean) / deviations.back();
  }
  return {y, means, deviations};
}

// x times gamma plus beta, which may be missing.
void Scale(const NormView& v, const Arrays& in, Values* y) {
  for (size_t i = 0; i < y->size(); ++i) {
    const auto k = static_cast<size_t>(static_cast<int64_t>(i) / v.inner % v.length);
    if (in.size() > 1) (*y)[i] *= in[1][k];
    if (in.size() > 2) (*y)[i] += in[2][k];
  }
}

OperatorCase LayerNormCase(const std::string& op, const TShape& shape, const NormView& v,
                           const Kwargs& kwargs, double eps) {
  OperatorCase c;
  c.name = format("{} {}, rows of {}", op, shape.ToString(), v.length);
  c.op = op;
  c.kwargs = kwargs;
  c.kwargs.emplace_back("eps", format("{}", eps));
  c.shapes = {shape};
  c.inputs = {Distinct(-2, 3), Uniform(0.5, 1.5), Uniform(-1, 1)};
  if (op != "_NormalizeRows") c.shapes.push_back(TShape{v.length});
  if (op == "LayerNorm") c.shapes.push_back(TShape{v.length});
  c.forward = [=](const Arrays& in, const Arrays&) {
    Arrays out = Normalize(v, in[0], op != "RMSNorm", eps);
    Scale(v, in, &out[0]);
    if (op != "LayerNorm") out.resize(1);
    return out;
  };
  c.tolerance = {64, "sums over rows, differences of close numbers, and a root"};
  return c;
}

// In every type. Narrow ones keep float32 parameters.
void RunLayerNorm(OperatorCase c, bool vectors) {
  if (vectors) c.must_accept = {"simd"};
  c.types = {DType::kFloat32, DType::kFloat64};
  RunCase(c);
  c.types = {DType::kFloat16};
  RunCase(c);
  c.types = {DType::kBfloat16};
  const CaseReport report = RunCase(c);
  if (vectors) CHECK(KernelRan(report, "simd"));
}

TEST_CASE("LayerNorm along the last axis") {
  for (const TShape& shape :
       {TShape{5, 7}, TShape{2, 3, 16}, TShape{9, 33}, TShape{3, 150}, TShape{4, 1}, TShape{11}}) {
    const int64_t length = shape[shape.ndim() - 1];
    RunLayerNorm(LayerNormCase("LayerNorm", shape, {shape.Size() / length, length, 1}, {}, 0.0625),
                 true);
  }
}

TEST_CASE("LayerNorm along other axes") {
  RunLayerNorm(LayerNormCase("LayerNorm", {2, 5, 3}, {2, 5, 3}, {{"axis", "1"}}, 0.0625), false);
  RunLayerNorm(LayerNormCase("LayerNorm", {6, 4}, {1, 6, 4}, {{"axis", "0"}}, 0.0625), false);
  RunLayerNorm(LayerNormCase("LayerNorm", {2, 3, 4, 5}, {2, 3, 20}, {{"axis", "-3"}}, 0.0625),
               false);
  RunLayerNorm(LayerNormCase("LayerNorm", {2, 6, 1}, {2, 6, 1}, {{"axis", "1"}}, 0.0625), true);
}

TEST_CASE("RMSNorm") {
  for (const TShape& shape : {TShape{5, 7}, TShape{2, 3, 16}, TShape{9, 33}, TShape{4, 1}}) {
    const int64_t length = shape[shape.ndim() - 1];
    RunLayerNorm(LayerNormCase("RMSNorm", shape, {shape.Size() / length, length, 1}, {}, 0.0625),
                 true);
  }
}

TEST_CASE("_NormalizeRows") {
  RunLayerNorm(LayerNormCase("_NormalizeRows", {5, 7}, {5, 7, 1}, {}, 0.0625), true);
  RunLayerNorm(LayerNormCase("_NormalizeRows", {3, 4, 5}, {3, 20, 1}, {{"num_axes", "2"}}, 0.0625),
               true);
  RunLayerNorm(LayerNormCase("_NormalizeRows", {3, 5, 7}, {1, 105, 1}, {{"num_axes", "3"}}, 0.0625),
               true);
}

TEST_CASE("normalization of rows: empty arrays") {
  for (const TShape& shape : {TShape{0, 3}, TShape{2, 0}}) {
    const NormView v{shape[0], shape[1], 1};
    RunCase(LayerNormCase("LayerNorm", shape, v, {}, 0.0625));
    RunCase(LayerNormCase("RMSNorm", shape, v, {}, 0.0625));
    RunCase(LayerNormCase("_NormalizeRows", shape, v, {}, 0.0625));
  }
  RunCase(LayerNormCase("LayerNorm", {2, 3, 0}, {2, 3, 0}, {{"axis", "1"}}, 0.0625));
}

TEST_CASE("normalization of rows: pieces for several threads, and blocks of a row") {
  const auto run = [](const char* op, const NormView& v) {
    OperatorCase c = LayerNormCase(op, {v.outer, v.length}, v, {}, 0.0625);
    c.types = {DType::kFloat32};
    c.must_accept = {"simd"};
    RunCase(c);
  };
  run("LayerNorm", {1009, 33, 1});
  run("RMSNorm", {131, 35, 1});  // the last slice is shorter
  for (const char* op : {"LayerNorm", "RMSNorm", "_NormalizeRows"}) {
    run(op, {5, 2051, 1});
    run(op, {3, 4133, 1});
  }
  RunLayerNorm(LayerNormCase("LayerNorm", {40, 3, 90}, {40, 3, 90}, {{"axis", "1"}}, 0.0625),
               false);
}

TEST_CASE("normalization of rows: the default eps, and small variances") {
  for (const auto& [op, eps] :
       {std::pair{"LayerNorm", 1e-5}, {"RMSNorm", 1e-6}, {"_NormalizeRows", 1e-5}}) {
    OperatorCase c = LayerNormCase(op, {4, 24}, {4, 24, 1}, {}, eps);
    c.kwargs.clear();
    c.inputs[0] = Distinct(-0.01, 0.01);
    c.backward = false;
    RunCase(c);
  }
}

// The reference's sums of numbers near 4096 are exact to 1e-12.
TEST_CASE("LayerNorm: a mean far from zero costs no accuracy") {
  OperatorCase c = LayerNormCase("LayerNorm", {3, 1000}, {3, 1000, 1}, {}, 0.0625);
  c.inputs[0] = Distinct(4095, 4097);
  c.types = {DType::kFloat32};
  c.backward = false;
  c.must_accept = {"simd"};
  RunCase(c);
}

TEST_CASE("normalization of rows: squares and sums outside the range of float") {
  const std::pair<double, double> ranges[] = {{-2e20, 3e20}, {1e38, 3e38}, {-2e-25, 3e-25}};
  for (const auto& [low, high] : ranges) {
    for (const char* op : {"LayerNorm", "RMSNorm", "_NormalizeRows"}) {
      for (const int64_t length : {37, 40}) {
        OperatorCase c = LayerNormCase(op, {3, length}, {3, length, 1}, {}, 0);
        c.name += format(", values up to {}", high);
        c.inputs[0] = Distinct(low, high);
        c.types = {DType::kFloat32, DType::kBfloat16};
        c.backward = false;
        c.must_accept = {"simd"};
        RunCase(c);
      }
    }
  }
}

TEST_CASE("LayerNorm: mean and standard deviation are outputs without gradients") {
  OperatorCase c = LayerNormCase("LayerNorm", {3, 2, 5}, {3, 2, 5}, {{"axis", "1"}}, 0.0625);
  c.kwargs.emplace_back("output_mean_var", "True");
  c.backward = false;
  RunCase(c);
  OperatorCase last = LayerNormCase("LayerNorm", {3, 20}, {3, 20, 1}, {}, 0.0625);
  last.kwargs.emplace_back("output_mean_var", "True");
  last.must_accept = {"simd"};
  // The derivative of the first output alone.
  last.gradient = [](const Arrays& in, const Arrays&, const Arrays& head) {
    const NormView v{3, 20, 1};
    const Arrays normal = Normalize(v, in[0], true, 0.0625);
    Arrays gradients = {Values(60), Values(20), Values(20)};
    for (int64_t row = 0; row < 3; ++row) {
      double mean = 0, along = 0;
      for (int64_t k = 0; k < 20; ++k) {
        const double g = head[0][row * 20 + k], n = normal[0][row * 20 + k];
        mean += g * in[1][k] / 20;
        along += g * in[1][k] * n / 20;
        gradients[1][k] += g * n;
        gradients[2][k] += g;
      }
      for (int64_t k = 0; k < 20; ++k) {
        const double g = head[0][row * 20 + k] * in[1][k], n = normal[0][row * 20 + k];
        gradients[0][row * 20 + k] = (g - mean - n * along) / normal[2][row];
      }
    }
    return gradients;
  };
  RunCase(last);
}

TEST_CASE("normalization of rows: parameters, shapes and types") {
  const auto create = [](const char* op, const Kwargs& kwargs) {
    return TestRegistry().Create(op, kwargs);
  };
  const auto norm = create("LayerNorm", {{"axis", "1"}});
  CHECK(norm->NumVisibleOutputs() == 1);
  CHECK(create("LayerNorm", {{"output_mean_var", "1"}})->NumVisibleOutputs() == 3);

  std::vector<TShape> in(3), out(3), aux;
  in[0] = {2, TShape::kUnknown, 4}, in[2] = TShape{3};
  CHECK(norm->InferShape(&in, &out, &aux));
  CHECK(in[0] == TShape{2, 3, 4});
  CHECK(in[1] == TShape{3});
  CHECK(out[0] == TShape{2, 3, 4});
  CHECK(out[1] == TShape{2, 1, 4});
  CHECK(out[2] == TShape{2, 1, 4});
  in[1] = TShape{5}, in[2] = TShape();
  CHECK_THROWS_WITH_AS(norm->InferShape(&in, &out, &aux),
                       "LayerNorm: gamma has shape [5], but [3] was expected", Error);
  in = {TShape{7}, TShape(), TShape()}, out.assign(3, TShape());
  CHECK_THROWS_WITH_AS(norm->InferShape(&in, &out, &aux),
                       "LayerNorm: axis = 1 is out of range for data with 1 axes; use -1 .. 0",
                       Error);
  in = {TShape{7, 2}}, out.assign(1, TShape());
  CHECK_THROWS_WITH_AS(create("_NormalizeRows", {{"num_axes", "3"}})->InferShape(&in, &out, &aux),
                       "_NormalizeRows: num_axes = 3, but the data have 2 axes", Error);
  CHECK_THROWS_WITH_AS(create("RMSNorm", {{"eps", "-1"}}), doctest::Contains("RMSNorm: eps = '-1'"),
                       Error);

  std::vector<DType> in_types = {DType::kBfloat16, DType::kUnknown, DType::kUnknown},
                     out_types(3, DType::kUnknown), aux_types;
  CHECK(norm->InferType(&in_types, &out_types, &aux_types));
  CHECK(in_types[1] == DType::kFloat32);
  CHECK(out_types[0] == DType::kBfloat16);
  CHECK(out_types[1] == DType::kFloat32);
  in_types[2] = DType::kBfloat16;
  CHECK_THROWS_WITH_AS(norm->InferType(&in_types, &out_types, &aux_types),
                       "LayerNorm: beta for bfloat16 data is bfloat16, but float32 was expected",
                       Error);
}

}  // namespace
}  // namespace mxtrain::test
