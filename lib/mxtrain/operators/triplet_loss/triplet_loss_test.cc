// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

void ExamineTriplet(const TShape& shape, const char* distance, double margin) {
  OperatorCase c;
  c.op = "triplet_loss";
  c.name = format("triplet_loss {} {}", shape.ToString(), distance);
  c.kwargs = {{"distance", distance}, {"margin", format("{}", margin)}};
  c.shapes = {shape, shape, shape};
  c.inputs = {Uniform(-1, 1)};
  const bool root = distance == std::string("euclidean");
  c.forward = [=](const Arrays& in, const Arrays&) {
    const auto length = static_cast<size_t>(shape.Product(1, shape.ndim()));
    Values y;
    for (size_t n = 0; n < static_cast<size_t>(shape[0]); ++n) {
      double near = 0, far = 0;
      for (size_t i = n * length; i < (n + 1) * length; ++i) {
        near += (in[0][i] - in[1][i]) * (in[0][i] - in[1][i]);
        far += (in[0][i] - in[2][i]) * (in[0][i] - in[2][i]);
      }
      y.push_back(std::max(0.0, margin + (root ? std::sqrt(near) - std::sqrt(far) : near - far)));
    }
    return Arrays{y};
  };
  c.types = {DType::kFloat32, DType::kFloat64};
  c.tolerance = {64, "sums of squares"};
  RunCase(c);
}

TEST_CASE("triplet_loss") {
  for (const char* distance : {"squared", "euclidean"}) {
    ExamineTriplet({7, 5}, distance, 0.25);
    ExamineTriplet({3, 2, 3}, distance, 2);
    ExamineTriplet({0, 4}, distance, 1);
  }
}

TEST_CASE("margin_ranking_loss") {
  OperatorCase c;
  c.op = c.name = "margin_ranking_loss";
  c.kwargs = {{"margin", "0.5"}};
  c.shapes = {{4, 3}, {4, 3}, {4, 3}};
  c.inputs = {Uniform(-1, 1), Uniform(-1, 1), Cycle({1, -1, -1, 1, 1})};
  const auto loss = [](double x, double y, double label) {
    return std::max(0.0, 0.5 - label * (x - y));
  };
  c.forward = [=](const Arrays& in, const Arrays&) {
    Values y;
    for (size_t i = 0; i < in[0].size(); ++i) y.push_back(loss(in[0][i], in[1][i], in[2][i]));
    return Arrays{y};
  };
  c.gradient = [=](const Arrays& in, const Arrays&, const Arrays& head) {
    Arrays gradient = {head[0], head[0], Values(head[0].size())};
    for (size_t i = 0; i < head[0].size(); ++i) {
      const double slope = loss(in[0][i], in[1][i], in[2][i]) > 0 ? -in[2][i] : 0;
      gradient[0][i] *= slope;
      gradient[1][i] *= -slope;
    }
    return gradient;
  };
  c.tolerance = {8, "a few operations"};
  RunCase(c);
}

TEST_CASE("losses with a margin: shapes") {
  std::vector<TShape> in = {TShape{2, 3}, TShape{}, TShape{}}, out(1), aux;
  CHECK(TestRegistry().Create("triplet_loss", {})->InferShape(&in, &out, &aux));
  CHECK(in[2] == TShape{2, 3});
  CHECK(out[0] == TShape{2});
  in = {TShape{2, 3}, TShape{2, 4}, TShape{}};
  CHECK_THROWS_WITH_AS(
      TestRegistry().Create("margin_ranking_loss", {})->InferShape(&in, &out, &aux),
      doctest::Contains("rhs"), Error);
  in = {TShape{2}, TShape{}, TShape{}};
  CHECK_THROWS_WITH_AS(TestRegistry().Create("triplet_loss", {})->InferShape(&in, &out, &aux),
                       doctest::Contains("no axis of features"), Error);
}

}  // namespace
}  // namespace mxtrain::test
