// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "mxtrain/operator/loss_scale.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

TEST_CASE("_scale_gradient copies data and multiplies the gradient") {
  for (const TShape& shape : {TShape{1}, TShape{0, 3}, TShape{3, 5}, TShape{2, 11, 3, 3}}) {
    OperatorCase c;
    c.name = "_scale_gradient " + shape.ToString();
    c.op = "_scale_gradient";
    c.shapes = {shape, {1}};
    c.inputs = {Uniform(-2, 2), Constant(6)};
    c.input_types = {DType::kUnknown, DType::kFloat32};
    c.forward = [](const Arrays& in, const Arrays&) { return Arrays{in[0]}; };
    c.gradient = [](const Arrays& in, const Arrays&, const Arrays& head) {
      return Arrays{Apply(head[0], [&](double g) { return g * in[1][0]; }), {}};
    };
    c.types = kAllFloatingTypes;
    c.tolerance = {1, "a product"};
    RunCase(c);
  }
}

TEST_CASE("_scale_gradient multiplies the gradient of each block of rows by its number") {
  struct Blocks {
    TShape shape;
    int64_t count;
  };
  for (const auto& [shape, count] :
       {Blocks{{3}, 3}, {{6}, 3}, {{3, 5}, 3}, {{4, 700}, 4}, {{6, 11, 3, 3}, 3}, {{2, 0}, 2}}) {
    OperatorCase c;
    c.name = format("_scale_gradient {} in {} blocks", shape.ToString(), count);
    c.op = "_scale_gradient";
    c.shapes = {shape, {count}};
    c.inputs = {Uniform(-2, 2), Cycle({0.25, 3, 0, 1})};
    c.input_types = {DType::kUnknown, DType::kFloat32};
    c.forward = [](const Arrays& in, const Arrays&) { return Arrays{in[0]}; };
    c.gradient = [](const Arrays& in, const Arrays&, const Arrays& head) {
      Values gradient = head[0];
      const size_t block = gradient.size() / in[1].size();
      for (size_t i = 0; i < gradient.size(); ++i) gradient[i] *= in[1][i / block];
      return Arrays{gradient, {}};
    };
    c.types = kAllFloatingTypes;
    c.tolerance = {1, "a product"};
    RunCase(c);
  }
}

TEST_CASE("_scale_gradient reports mismatches") {
  const auto property = TestRegistry().Create("_scale_gradient", {});
  for (const TShape& scale : {TShape{3}, TShape{2, 1}}) {
    std::vector<TShape> in = {{2, 3}, scale}, out = {TShape()}, aux;
    CHECK_THROWS_WITH_AS(property->InferShape(&in, &out, &aux),
                         doctest::Contains("data of shape [2, 3] need one number, or one for each"),
                         Error);
  }
  std::vector<DType> types = {DType::kFloat16, DType::kFloat16}, out_types = {DType::kUnknown},
                     aux_types;
  CHECK_THROWS_WITH_AS(property->InferType(&types, &out_types, &aux_types),
                       "_scale_gradient: scale is float16, but float32 was expected", Error);
  CHECK(property->NeedsHeadGradient());
  CHECK_FALSE(property->HasGradient(1));
}

// Two parameters, with factors 3 and 5, in a step where one of three gradients has this sum of
// squares; the state of the scale before and after.
void RunUpdate(const std::string& name, double sum_of_squares, const Values& before,
               const Values& after) {
  const bool finite = std::isfinite(sum_of_squares);
  OperatorCase c;
  c.name = "_loss_scale_update " + name;
  c.op = "_loss_scale_update";
  c.shapes = {{3}, {2, 4}};
  c.inputs = {Cycle({4, sum_of_squares, 0}), Cycle({0.1f, 0.2f, 3, 1, 0.3f, 0.4f, 5, 2})};
  c.input_types = {DType::kFloat64, DType::kFloat32};
  c.aux = {Cycle(before), Constant(7)};
  c.forward = [=](const Arrays& in, const Arrays&) {
    Arrays out = {in[1]};
    for (size_t i : {2, 6}) out[0][i] = finite ? in[1][i] / before[kLossScaleValue] : 0;
    return out;
  };
  c.aux_after_forward = [=](const Arrays&, const Arrays&) {
    return Arrays{after, {after[kLossScaleValue]}};
  };
  c.backward = false;
  c.types = {DType::kFloat32};
  c.tolerance = {0, "powers of two"};
  RunCase(c);
}

TEST_CASE("_loss_scale_update follows the gradients") {
  const double infinite = std::numeric_limits<double>::infinity(),
               none = std::numeric_limits<double>::quiet_NaN();
  RunUpdate("a good step", 12, {1024, 3, 0, 0}, {1024, 4, 0, 0});
  RunUpdate("gradients of zero", 0, {1024, 3, 0, 0}, {1024, 4, 0, 0});
  RunUpdate("gradients beyond float32's squares", 1e76, {1024, 3, 0, 0}, {1024, 4, 0, 0});
  RunUpdate("an overflow", infinite, {1024, 3, 1, 0}, {512, 0, 2, 0});
  RunUpdate("NaN", none, {1024, 1999, 0, 0}, {512, 0, 1, 0});
  RunUpdate("one good step too few", 12, {1024, 1998, 2, 0}, {1024, 1999, 2, 0});
  RunUpdate("enough good steps", 12, {1024, 1999, 2, 0}, {2048, 0, 2, 0});
  RunUpdate("at the highest scale", 12, {1 << 24, 1999, 2, 0}, {1 << 24, 0, 2, 0});
  RunUpdate("at the lowest scale", infinite, {1, 3, 24, 0}, {1, 0, 25, 1});
  RunUpdate("up from the lowest scale", 12, {1, 1999, 24, 0}, {2, 0, 24, 0});
}

}  // namespace
}  // namespace mxtrain::test
