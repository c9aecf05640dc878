// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/error_message.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

struct RegionLossScene {
  double box_weight = 1, scale = 1;
  std::vector<TShape> shapes;  // scores, offsets, targets

  size_t images() const { return static_cast<size_t>(shapes[0][0]); }
  size_t regions() const { return static_cast<size_t>(shapes[0][1]); }
  size_t columns() const { return static_cast<size_t>(shapes[0][2]); }
  long double Factor(const Arrays& in) const {
    long double count = 0;
    for (size_t r = 0; r < images() * regions(); ++r) count += in[2][r * 5] >= 0;
    return static_cast<long double>(images()) / std::max(count, 1.0L);
  }
  // Of region r of all images, with number `moved` of its scores and offsets moved.
  long double Term(const Arrays& in, size_t r, size_t moved = 0, long double by = 0) const {
    const double label = in[2][r * 5];
    if (label < 0) return 0;
    std::vector<long double> x;
    for (size_t k = 0; k < columns(); ++k) x.push_back(in[0][r * columns() + k]);
    for (size_t k = 0; k < 4 * columns(); ++k) x.push_back(in[1][r * 4 * columns() + k]);
    x[moved] += by;
    long double sum = 0;
    for (size_t k = 0; k < columns(); ++k) sum += std::exp(x[k]);
    const auto own = static_cast<size_t>(label);
    long double loss = std::log(sum) - x[own];
    for (size_t k = 0; own > 0 && k < 4; ++k) {
      const long double off = std::abs(x[columns() + own * 4 + k] - in[2][r * 5 + 1 + k]);
      loss += box_weight * (off < 1 / 9.0L ? 4.5L * off * off : off - 1 / 18.0L);
    }
    return loss;
  }
  Arrays Losses(const Arrays& in) const {
    Values losses;
    for (size_t n = 0; n < images(); ++n) {
      long double sum = 0;
      for (size_t r = 0; r < regions(); ++r) sum += Term(in, n * regions() + r);
      losses.push_back(static_cast<double>(sum * Factor(in)));
    }
    return {losses};
  }
  // By central differences of fourth order.
  Arrays Differences(const Arrays& in) const {
    Arrays grads(3);
    for (size_t r = 0; r < images() * regions(); ++r) {
      for (size_t moved = 0; moved < 5 * columns(); ++moved) {
        const long double step = 1e-4L;
        const auto at = [&](long double steps) { return Term(in, r, moved, steps * step); };
        const long double slope = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * step);
        grads[moved < columns() ? 0 : 1].push_back(static_cast<double>(scale * Factor(in) * slope));
      }
    }
    return grads;
  }
};

void ExamineRegionLoss(const std::string& name, const RegionLossScene& scene,
                       const Values& targets) {
  OperatorCase c;
  c.op = "RegionLoss";
  c.name = "RegionLoss, " + name;
  c.kwargs = {{"box_weight", std::to_string(scene.box_weight)},
              {"grad_scale", std::to_string(scene.scale)}};
  c.shapes = scene.shapes;
  c.inputs = {Distinct(-2, 2), Distinct(-1, 1), Cycle(targets)};
  c.forward = [=](const Arrays& in, const Arrays&) { return scene.Losses(in); };
  c.gradient = [=](const Arrays& in, const Arrays&, const Arrays&) {
    return scene.Differences(in);
  };
  c.tolerance = {100, "sums over regions and classes"};
  RunCase(c);
}

// Of classes 0, 2, none, 1, 3, 0 with targets near and far.
const Values kRegionTargets = {0, 0, 0,    0,    0,   2, 0.3,  -0.2, 0.15,  1.5,  -1, 0, 0, 0, 0,
                               1, 0, 0.01, -0.5, 0.7, 3, -0.9, 0.25, 0.125, 0.02, 0,  0, 0, 0, 0};
std::vector<TShape> RegionLossShapes(int64_t images, int64_t regions, int64_t columns) {
  return {{images, regions, columns}, {images, regions, 4 * columns}, {images, regions, 5}};
}

TEST_CASE("RegionLoss") {
  ExamineRegionLoss("two images", {.shapes = RegionLossShapes(2, 3, 4)}, kRegionTargets);
  ExamineRegionLoss("weights",
                    {.box_weight = 2.5, .scale = 0.25, .shapes = RegionLossShapes(3, 4, 4)},
                    kRegionTargets);
  ExamineRegionLoss("no boxes", {.box_weight = 0, .shapes = RegionLossShapes(1, 6, 4)},
                    kRegionTargets);
  ExamineRegionLoss("no region", {.shapes = RegionLossShapes(2, 2, 3)}, {-1, 0, 0, 0, 0});
  ExamineRegionLoss("no image", {.shapes = RegionLossShapes(0, 2, 3)}, {0});
  ExamineRegionLoss("one region", {.shapes = RegionLossShapes(1, 1, 2)}, {1, 0.5, 0.1, 0, -0.1});
}

TEST_CASE("RegionLoss: shapes and types") {
  const auto op = TestRegistry().Create("RegionLoss", {});
  CHECK(!op->NeedsHeadGradient());
  CHECK(op->HasGradient(1));
  CHECK(!op->HasGradient(2));
  std::vector<TShape> in = {{2, 7, 4}, TShape(), TShape()}, out(1), aux;
  CHECK(op->InferShape(&in, &out, &aux));
  CHECK(in[1] == TShape{2, 7, 16});
  CHECK(in[2] == TShape{2, 7, 5});
  CHECK(out[0] == TShape{2});
  in = {TShape(), {2, TShape::kUnknown, 16}, {TShape::kUnknown, 7, 5}};
  CHECK(op->InferShape(&in, &out, &aux));
  CHECK(in[0] == TShape{2, 7, 4});
  in[2] = {2, 7, 6};
  CHECK(Says(MessageOf([&] { op->InferShape(&in, &out, &aux); }), "RegionLoss: targets has shape"));
  std::vector<DType> types = {DType::kFloat16, DType::kUnknown, DType::kUnknown},
                     result(1, DType::kUnknown), none;
  CHECK(op->InferType(&types, &result, &none));
  CHECK(types[2] == DType::kFloat32);
}

}  // namespace
}  // namespace mxtrain::test
