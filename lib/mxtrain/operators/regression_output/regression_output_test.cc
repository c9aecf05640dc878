// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>

#include "mxtrain/base/format.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

struct Head {
  std::string op;
  std::function<double(double)> predict;
  std::function<double(double, double)> gradient;  // of (prediction, label)
};

const std::vector<Head>& Heads() {
  static const auto same = [](double x) { return x; };
  static const auto difference = [](double y, double l) { return y - l; };
  static const std::vector<Head> heads = {
      {"LinearRegressionOutput", same, difference},
      {"LogisticRegressionOutput", [](double x) { return 1 / (1 + std::exp(-x)); }, difference},
      {"MAERegressionOutput", same, [](double y, double l) { return y > l ? 1.0 : -1.0; }}};
  return heads;
}

void RunRegression(const Head& head, const TShape& data, const TShape& label, double per_sample,
                   double scale) {
  OperatorCase c;
  c.name = format("{} {} {}", head.op, data.ToString(), label.ToString());
  c.op = head.op;
  if (scale != 1) c.kwargs = {{"grad_scale", format("{}", scale)}};
  c.shapes = {data, label};
  c.inputs = {Distinct(-2, 2), Uniform(0, 1)};
  c.forward = [&](const Arrays& in, const Arrays&) { return Arrays{Apply(in[0], head.predict)}; };
  c.gradient = [&](const Arrays& in, const Arrays&, const Arrays&) {
    return Arrays{
        Apply(Apply(in[0], head.predict), in[1],
              [&](double y, double l) { return scale / per_sample * head.gradient(y, l); }),
        {}};
  };
  c.types = kAllFloatingTypes;
  c.tolerance = {8, "an exponential"};
  RunCase(c);
}

TEST_CASE("regression outputs: gradients are divided by the numbers per sample, not by the batch") {
  for (const Head& head : Heads()) {
    RunRegression(head, {5, 1}, {}, 1, 1);
    RunRegression(head, {5, 3}, {}, 3, 1);
    RunRegression(head, {5, 3}, {}, 3, 0.5);
    RunRegression(head, {4, 2, 3}, {4, 6}, 6, 2);
    RunRegression(head, {0, 3}, {0, 3}, 3, 1);
    RunRegression(head, TShape{7}, TShape{7}, 1, 1);
  }
}

TEST_CASE("MAERegressionOutput: the gradient at equality is negative") {
  OperatorCase c;
  c.name = "equality";
  c.op = "MAERegressionOutput";
  c.shapes = {TShape{3}, TShape{3}};
  c.inputs = {Cycle({1, 2, 3}), Cycle({1, 3, 2})};
  c.forward = [](const Arrays& in, const Arrays&) { return Arrays{in[0]}; };
  c.gradient = [](const Arrays&, const Arrays&, const Arrays&) { return Arrays{{-1, -1, 1}, {}}; };
  RunCase(c);
}

TEST_CASE("regression outputs: shapes") {
  const auto property = TestRegistry().Create("LinearRegressionOutput", {});
  std::vector<TShape> in = {TShape{4, 1}, TShape{}}, out(1), aux;
  CHECK(property->InferShape(&in, &out, &aux));
  CHECK(in[1] == TShape{4});
  in = {TShape{4, 2}, TShape{}}, out = {TShape{}};
  CHECK(property->InferShape(&in, &out, &aux));
  CHECK(in[1] == TShape{4, 2});
  in = {TShape{4, 2}, TShape{4}};
  CHECK_THROWS_WITH_AS(property->InferShape(&in, &out, &aux),
                       doctest::Contains("label has shape [4]"), Error);
  CHECK(!property->NeedsHeadGradient());
  CHECK(!property->HasGradient(1));
}

}  // namespace
}  // namespace mxtrain::test
