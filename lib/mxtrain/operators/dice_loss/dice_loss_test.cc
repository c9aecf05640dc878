// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

// Images of one class count, pixel by pixel.
struct DiceReference {
  int64_t images, classes, pixels;
  double smooth;

  size_t At(int64_t n, int64_t k, int64_t i) const {
    return static_cast<size_t>((n * classes + k) * pixels + i);
  }
  bool Is(const Arrays& in, int64_t n, int64_t k, int64_t i) const {
    return in[1][static_cast<size_t>(n * pixels + i)] == static_cast<double>(k);
  }
  bool IsLearnt(const Arrays& in, int64_t n, int64_t i) const {
    const double label = in[1][static_cast<size_t>(n * pixels + i)];
    return label >= 0 && label < static_cast<double>(classes);
  }
  Values Probabilities(const Arrays& in) const {
    Values p(in[0].size());
    for (int64_t n = 0; n < images; ++n) {
      for (int64_t i = 0; i < pixels; ++i) {
        double sum = 0;
        for (int64_t k = 0; k < classes; ++k) sum += std::exp(in[0][At(n, k, i)]);
        for (int64_t k = 0; k < classes; ++k) p[At(n, k, i)] = std::exp(in[0][At(n, k, i)]) / sum;
      }
    }
    return p;
  }
  // The two sides of the fraction of a class.
  std::pair<double, double> Fraction(const Arrays& in, const Values& p, int64_t n,
                                     int64_t k) const {
    double top = smooth, bottom = smooth;
    for (int64_t i = 0; i < pixels; ++i) {
      if (!IsLearnt(in, n, i)) continue;
      if (Is(in, n, k, i)) top += 2 * p[At(n, k, i)], bottom += 1;
      bottom += p[At(n, k, i)];
    }
    return {top, bottom};
  }
  Values Loss(const Arrays& in) const {
    const Values p = Probabilities(in);
    Values loss;
    for (int64_t n = 0; n < images; ++n) {
      double sum = 0;
      for (int64_t k = 0; k < classes; ++k) {
        const auto [top, bottom] = Fraction(in, p, n, k);
        sum += top / bottom;
      }
      loss.push_back(1 - sum / static_cast<double>(classes));
    }
    return loss;
  }
  Values Slopes(const Arrays& in, const Values& head) const {
    const Values p = Probabilities(in);
    Values by_p(p.size()), slopes(p.size());
    for (int64_t n = 0; n < images; ++n) {
      for (int64_t k = 0; k < classes; ++k) {
        const auto [top, bottom] = Fraction(in, p, n, k);
        for (int64_t i = 0; i < pixels; ++i) {
          if (!IsLearnt(in, n, i)) continue;
          const double slope = ((Is(in, n, k, i) ? 2 : 0) * bottom - top) / (bottom * bottom);
          by_p[At(n, k, i)] = -slope / static_cast<double>(classes) * head[static_cast<size_t>(n)];
        }
      }
      for (int64_t i = 0; i < pixels; ++i) {
        double mean = 0;
        for (int64_t k = 0; k < classes; ++k) mean += by_p[At(n, k, i)] * p[At(n, k, i)];
        for (int64_t k = 0; k < classes; ++k)
          slopes[At(n, k, i)] = p[At(n, k, i)] * (by_p[At(n, k, i)] - mean);
      }
    }
    return slopes;
  }
};

void ExamineDice(const TShape& shape, double smooth) {
  OperatorCase c;
  c.op = "dice_loss";
  c.name = format("dice_loss {} {}", shape.ToString(), smooth);
  c.kwargs = {{"smooth", format("{}", smooth)}};
  std::vector<int64_t> label(shape.begin(), shape.end());
  label.erase(label.begin() + 1);
  c.shapes = {shape, TShape(label)};
  c.inputs = {Uniform(-2, 2), Cycle({0, 1, 1, -1, 2, 0, 7})};
  const DiceReference dice{shape[0], shape[1], shape.Product(2, shape.ndim()), smooth};
  c.forward = [dice](const Arrays& in, const Arrays&) { return Arrays{dice.Loss(in)}; };
  c.gradient = [dice](const Arrays& in, const Arrays&, const Arrays& head) {
    return Arrays{dice.Slopes(in, head[0]), {}};
  };
  c.types = {DType::kFloat32, DType::kFloat64};
  c.tolerance = {64, "sums over the pixels"};
  RunCase(c);
}

TEST_CASE("dice_loss") {
  ExamineDice({2, 3, 4, 5}, 1);
  ExamineDice({3, 3, 2, 2}, 0.01);
  ExamineDice({1, 2, 6}, 10);
  ExamineDice({2, 1, 3, 3}, 1);
  ExamineDice({0, 3, 4, 5}, 1);
}

TEST_CASE("dice_loss: shapes") {
  std::vector<TShape> in = {TShape{2, 3, 4, 5}, TShape{}}, out(1), aux;
  CHECK(TestRegistry().Create("dice_loss", {})->InferShape(&in, &out, &aux));
  CHECK(in[1] == TShape{2, 4, 5});
  CHECK(out[0] == TShape{2});
  in = {TShape{2, 3, 4, 5}, TShape{2, 20}};  // as SoftmaxOutput has it
  CHECK(TestRegistry().Create("dice_loss", {})->InferShape(&in, &out, &aux));
  const auto refused = [](std::vector<TShape> shapes, const char* what) {
    std::vector<TShape> outputs(1), none;
    CHECK_THROWS_WITH_AS(
        TestRegistry().Create("dice_loss", {})->InferShape(&shapes, &outputs, &none),
        doctest::Contains(what), Error);
  };
  refused({TShape{2, 3}, TShape{}}, "have no pixels");
  refused({TShape{2, 3, 4, 5}, TShape{2, 4, 4}}, "label");
  refused({TShape{2, 3, 4, 5}, TShape{2, 19}}, "label");
  CHECK_THROWS_WITH_AS(TestRegistry().Create("dice_loss", {{"smooth", "0"}}),
                       doctest::Contains("smooth"), Error);
}

}  // namespace
}  // namespace mxtrain::test
