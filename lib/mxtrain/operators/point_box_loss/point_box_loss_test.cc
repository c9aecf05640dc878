// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tests/support/error_message.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

struct Settings {
  Values strides;
  size_t candidates = 13;
  double score_power = 1, overlap_power = 6, gamma = 2, box_weight = 2, scale = 1;
  int64_t bins = 0;
  double distribution_weight = 0.25;
};

// Of more digits than the kernel, for difference quotients.
using Real = long double;
using Reals = std::vector<Real>;

struct Box {
  Real left, top, right, bottom;
  Real Area() const { return (right - left) * (bottom - top); }
};
Real Common(const Box& a, const Box& b) {
  return std::max<Real>(0, std::min(a.right, b.right) - std::max(a.left, b.left)) *
         std::max<Real>(0, std::min(a.bottom, b.bottom) - std::max(a.top, b.top));
}
Real Iou(const Box& a, const Box& b) {
  return Common(a, b) / (a.Area() + b.Area() - Common(a, b));
}
Real Giou(const Box& a, const Box& b) {
  const Real together = a.Area() + b.Area() - Common(a, b);
  const Real hull = Box{std::min(a.left, b.left), std::min(a.top, b.top),
                        std::max(a.right, b.right), std::max(a.bottom, b.bottom)}
                        .Area();
  return Iou(a, b) - (hull - together) / hull;
}

struct Object {
  size_t label;
  Box box;
  bool learnt;
};

// The points of one image, by the definition in the header, with maps as lists of points.
class Image {
 public:
  Image(const Settings& settings, const Arrays& in, const std::vector<TShape>& shapes,
        int64_t image)
      : settings_(settings), classes_(static_cast<size_t>(shapes[0][1])) {
    const size_t levels = settings.strides.size();
    for (size_t l = 0; l < levels; ++l) {
      const int64_t h = shapes[l][2], w = shapes[l][3];
      for (int64_t y = 0; y < h; ++y) {
        for (int64_t x = 0; x < w; ++x) {
          Point p{settings.bins,
                  settings.strides[l],
                  (static_cast<double>(x) + 0.5) * settings.strides[l],
                  (static_cast<double>(y) + 0.5) * settings.strides[l],
                  {},
                  {},
                  l,
                  static_cast<size_t>(y * w + x)};
          for (int64_t k = 0; k < shapes[0][1]; ++k)
            p.score.push_back(
                in[l][static_cast<size_t>(((image * shapes[0][1] + k) * h + y) * w + x)]);
          const int64_t numbers = 4 * std::max<int64_t>(settings.bins, 1);
          for (int64_t k = 0; k < numbers; ++k)
            p.side.push_back(
                in[levels + l][static_cast<size_t>(((image * numbers + k) * h + y) * w + x)]);
          points.push_back(p);
        }
      }
    }
    const int64_t most = shapes.back()[1];
    for (int64_t m = 0; m < most; ++m) {
      const double* row = &in.back()[static_cast<size_t>((image * most + m) * 6)];
      const Box box{row[1], row[2], row[3], row[4]};
      if (row[0] < 0 || row[0] >= static_cast<double>(classes_) || !(box.right > box.left) ||
          !(box.bottom > box.top))
        continue;
      objects_.push_back({static_cast<size_t>(row[0]), box, row[5] == 0});
    }
    Assign();
  }

  struct Point {
    int64_t bins;
    double stride, x, y;
    Reals score, side;
    size_t level, cell;
    int object = -1;
    Real target = 0;
    bool ignored = false;
    // Of a distribution over strides; S_i of the paper.
    Reals Probabilities(size_t k) const {
      const auto count = static_cast<size_t>(bins);
      Reals s;
      Real sum = 0;
      for (size_t b = 0; b < count; ++b) s.push_back(std::exp(side[k * count + b]));
      for (const Real part : s) sum += part;
      for (Real& part : s) part /= sum;
      return s;
    }
    Real Distance(size_t k) const {
      if (bins == 0) return stride * std::exp(side[k]);
      Real mean = 0;
      const Reals s = Probabilities(k);
      for (size_t b = 0; b < s.size(); ++b) mean += static_cast<Real>(b) * s[b];
      return stride * mean;
    }
    Box Proposed() const {
      return {x - Distance(0), y - Distance(1), x + Distance(2), y + Distance(3)};
    }
    // Li et al. 2020, equation 6, of four sides.
    Real Dfl(const Box& box) const {
      const Real away[] = {x - box.left, y - box.top, box.right - x, box.bottom - y};
      Real sum = 0;
      for (size_t k = 0; k < 4; ++k) {
        const Real d = std::clamp<Real>(away[k] / stride, 0, static_cast<Real>(bins) - 1.01L);
        const auto i = static_cast<size_t>(std::floor(d));
        const Reals s = Probabilities(k);
        sum -= (static_cast<Real>(i + 1) - d) * std::log(s[i]) +
               (d - static_cast<Real>(i)) * std::log(s[i + 1]);
      }
      return sum / 4;
    }
  };
  std::vector<Point> points;

  Real Sum() const {
    Real sum = 0;
    for (const Point& p : points) sum += p.target;
    return std::max<Real>(sum, 1);
  }
  // The terms of a point, with the targets as they are.
  Real LossOf(const Point& p) const {
    if (p.ignored) return 0;
    Real sum = 0;
    for (size_t k = 0; k < classes_; ++k) {
      const Real prob = 1 / (1 + std::exp(-p.score[k]));
      const Real y =
          p.object >= 0 && objects_[static_cast<size_t>(p.object)].label == k ? p.target : 0;
      sum -= std::pow(std::abs(y - prob), settings_.gamma) *
             (y * std::log(prob) + (1 - y) * std::log(1 - prob));
    }
    if (p.object < 0) return sum;
    const Box& box = objects_[static_cast<size_t>(p.object)].box;
    sum += settings_.box_weight * p.target * (1 - Giou(p.Proposed(), box));
    if (settings_.bins > 0) sum += settings_.distribution_weight * p.target * p.Dfl(box);
    return sum;
  }

 private:
  static bool Within(Real at, Real low, Real high, Real least) {
    const Real half = std::max(high - low, least) / 2, middle = (low + high) / 2;
    return at >= middle - half && at <= middle + half;
  }
  Real Alignment(const Point& p, const Object& o) const {
    return std::pow(1 / (1 + std::exp(-p.score[o.label])), settings_.score_power) *
           std::pow(Iou(p.Proposed(), o.box), settings_.overlap_power);
  }
  void Assign() {
    for (size_t m = 0; m < objects_.size(); ++m) {
      const Object& o = objects_[m];
      if (!o.learnt) continue;
      std::vector<std::pair<Real, size_t>> wanted;
      for (size_t i = 0; i < points.size(); ++i) {
        const Point& p = points[i];
        if (Within(p.x, o.box.left, o.box.right, p.stride) &&
            Within(p.y, o.box.top, o.box.bottom, p.stride))
          wanted.emplace_back(-Alignment(p, o), i);
      }
      std::stable_sort(wanted.begin(), wanted.end());
      if (wanted.size() > settings_.candidates) wanted.resize(settings_.candidates);
      for (const auto& [t, i] : wanted) {
        Point& p = points[i];
        if (p.object >= 0 && Iou(p.Proposed(), objects_[static_cast<size_t>(p.object)].box) >=
                                 Iou(p.Proposed(), o.box))
          continue;
        p.object = static_cast<int>(m);
      }
    }
    for (size_t m = 0; m < objects_.size(); ++m) {
      Real most_t = 0, most_u = 0;
      for (const Point& p : points) {
        if (p.object != static_cast<int>(m)) continue;
        most_t = std::max(most_t, Alignment(p, objects_[m]));
        most_u = std::max(most_u, Iou(p.Proposed(), objects_[m].box));
      }
      for (Point& p : points) {
        if (p.object != static_cast<int>(m)) continue;
        p.target = most_t > 0 ? Alignment(p, objects_[m]) / most_t * most_u : 0;
      }
    }
    for (Point& p : points) {
      p.ignored =
          p.object < 0 && std::any_of(objects_.begin(), objects_.end(), [&p](const Object& o) {
            return !o.learnt && p.x >= o.box.left && p.x <= o.box.right && p.y >= o.box.top &&
                   p.y <= o.box.bottom;
          });
    }
  }

  const Settings settings_;
  const size_t classes_;
  std::vector<Object> objects_;
};

// By central differences of the terms of each point, whose targets stay.
Arrays Gradient(const Settings& settings, const Arrays& in, const std::vector<TShape>& shapes) {
  Arrays grads;
  for (const Values& map : in) grads.emplace_back(map.size());
  grads.back().clear();
  const size_t levels = settings.strides.size();
  for (int64_t n = 0; n < shapes[0][0]; ++n) {
    Image image(settings, in, shapes, n);
    const Real factor = settings.scale / image.Sum();
    for (Image::Point& p : image.points) {
      // Of fourth order.
      const auto slope = [&](Real* x) {
        const Real step = 1e-4L, here = *x;
        const auto at = [&](Real steps) {
          *x = here + steps * step;
          return image.LossOf(p);
        };
        const Real quotient = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * step);
        *x = here;
        return static_cast<double>(factor * quotient);
      };
      const auto place = [&](int64_t channels, size_t k) {
        const int64_t plane = shapes[p.level][2] * shapes[p.level][3];
        return static_cast<size_t>((n * channels + static_cast<int64_t>(k)) * plane) + p.cell;
      };
      for (size_t k = 0; k < p.score.size(); ++k)
        grads[p.level][place(shapes[0][1], k)] = slope(&p.score[k]);
      for (size_t k = 0; k < p.side.size(); ++k)
        grads[levels + p.level][place(std::ssize(p.side), k)] = slope(&p.side[k]);
    }
  }
  return grads;
}

void Examine(const std::string& name, const Settings& settings, const std::vector<TShape>& shapes,
             const Values& labels, Kwargs more = {}) {
  OperatorCase c;
  c.op = "PointBoxLoss";
  c.name = "PointBoxLoss " + name;
  std::string strides = "(";
  for (const double s : settings.strides) strides += format("{},", s);
  c.kwargs = {{"strides", strides + ")"}};
  c.kwargs.insert(c.kwargs.end(), more.begin(), more.end());
  c.shapes = shapes;
  c.inputs.assign(shapes.size() / 2, Distinct(-2, 1.5));
  c.inputs.resize(shapes.size() - 1, Distinct(-0.7, 1.3));
  c.inputs.push_back(Cycle(labels));
  c.forward = [=](const Arrays& in, const Arrays&) {
    Values losses;
    for (int64_t n = 0; n < shapes[0][0]; ++n) {
      const Image image(settings, in, shapes, n);
      Real sum = 0;
      for (const Image::Point& p : image.points) sum += image.LossOf(p);
      losses.push_back(static_cast<double>(sum / image.Sum()));
    }
    return Arrays{losses};
  };
  c.gradient = [=](const Arrays& in, const Arrays&, const Arrays&) {
    return Gradient(settings, in, shapes);
  };
  c.tolerance = {2000, "powers of overlaps, which are differences of coordinates"};
  RunCase(c);
}

// Of two images of 32x24 with up to three objects each: a large one with a small one in it, two
// that overlap, one smaller than the distance of points, one that nothing is learnt of, no objects.
const Values kTwoImages = {1, 2.3,  1.1, 21.7, 19.2, 0, 0,  7.9,  6.2, 15.6, 14.3, 0,
                           2, 26.1, 3.3, 27.9, 5.2,  0, 0,  12.2, 5.1, 30.3, 22.4, 1,
                           2, 3.1,  2.2, 13.7, 12.9, 0, -1, -1,   -1,  -1,   -1,   -1};
const std::vector<TShape> kTwoLevels = {
    {2, 3, 6, 8}, {2, 3, 3, 4}, {2, 4, 6, 8}, {2, 4, 3, 4}, {2, 3, 6}};

}  // namespace

TEST_CASE("PointBoxLoss") {
  const Settings usual{.strides = {4, 8}};
  Examine("two images", usual, kTwoLevels, kTwoImages);
  Examine("few candidates", {.strides = {4, 8}, .candidates = 2}, kTwoLevels, kTwoImages,
          {{"candidates", "2"}});
  Examine(
      "other powers",
      {.strides = {4, 8}, .score_power = 0.5, .overlap_power = 2, .gamma = 1.5, .box_weight = 5},
      kTwoLevels, kTwoImages,
      {{"score_power", "0.5"},
       {"overlap_power", "2"},
       {"focal_gamma", "1.5"},
       {"box_weight", "5"}});
  Examine("cross-entropy, scaled", {.strides = {4, 8}, .gamma = 0, .scale = 0.25}, kTwoLevels,
          kTwoImages, {{"focal_gamma", "0"}, {"grad_scale", "0.25"}});
  Examine("the best overlap, whatever the score", {.strides = {4, 8}, .score_power = 0}, kTwoLevels,
          kTwoImages, {{"score_power", "0"}});
}

TEST_CASE("PointBoxLoss: distributions of distances") {
  for (const int64_t bins : {2, 4, 9}) {
    std::vector<TShape> shapes = kTwoLevels;
    for (const size_t i : {2, 3}) shapes[i][1] = 4 * bins;
    Examine(format("distributions over {}", bins), {.strides = {4, 8}, .bins = bins}, shapes,
            kTwoImages, {{"bins", std::to_string(bins)}});
    Examine(format("distributions over {}, weighted", bins),
            {.strides = {4, 8}, .overlap_power = 1, .bins = bins, .distribution_weight = 3}, shapes,
            kTwoImages,
            {{"bins", std::to_string(bins)}, {"overlap_power", "1"}, {"distribution_weight", "3"}});
  }
  CHECK(Says(MessageOf([] {
               TestRegistry().Create("PointBoxLoss", {{"strides", "(8,)"}, {"bins", "1"}});
             }),
             "PointBoxLoss: bins = 1: expected 0, or at least 2 for a distribution"));
}

TEST_CASE("PointBoxLoss: sizes") {
  Examine("one point", {.strides = {16}}, {{1, 1, 1, 1}, {1, 4, 1, 1}, {1, 1, 6}},
          {0, 2, 3, 12, 14, 0});
  Examine("no rows", {.strides = {16}}, {{2, 2, 2, 1}, {2, 4, 2, 1}, {2, 0, 6}}, {0});
  Examine("no image", {.strides = {16}}, {{0, 2, 2, 1}, {0, 4, 2, 1}, {0, 3, 6}}, {0});
  // A class that the net does not have, boxes without an area or with their corners exchanged.
  Examine("no objects", {.strides = {8}}, {{1, 2, 3, 3}, {1, 4, 3, 3}, {1, 4, 6}},
          {2, 2, 3, 12, 14, 0, 0, 5, 5, 5, 9, 0, 1, 9, 9, 3, 3, 0, -1, 1, 1, 9, 9, 0});
}

TEST_CASE("PointBoxLoss: shapes") {
  const auto op = TestRegistry().Create("PointBoxLoss", {{"strides", "(8, 16)"}});
  CHECK(op->ListArguments() ==
        std::vector<std::string>{"score0", "score1", "side0", "side1", "label"});
  CHECK(!op->NeedsHeadGradient());
  CHECK(op->HasGradient(3));
  CHECK(!op->HasGradient(4));
  std::vector<TShape> in = {{2, 3, 4, 4}, {2, 3, 2, 2}, TShape(), TShape(), TShape()}, out(1), aux;
  CHECK(!op->InferShape(&in, &out, &aux));  // how many objects is for the data to say
  CHECK(out[0] == TShape{2});
  in[4] = {2, 7, 6};
  CHECK(op->InferShape(&in, &out, &aux));
  CHECK(in[2] == TShape{2, 4, 4, 4});
  in[4] = {2, 7, 5};
  CHECK(Says(MessageOf([&] { op->InferShape(&in, &out, &aux); }), "PointBoxLoss: label has shape"));
}

}  // namespace mxtrain::test
