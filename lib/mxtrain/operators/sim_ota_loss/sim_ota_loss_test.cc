// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/error_message.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

struct OtaSettings {
  Values strides;
  size_t candidates = 10;
  double radius = 2.5, overlap_cost = 3, box_weight = 5, objectness_weight = 1, class_weight = 1,
         l1_weight = 0, scale = 1;
};

// Of more digits than the kernel, for difference quotients.
using Wide = long double;

struct OtaBox {
  Wide left, top, right, bottom;
  Wide Area() const { return (right - left) * (bottom - top); }
};
Wide OtaOverlap(const OtaBox& a, const OtaBox& b) {
  const Wide common = std::max<Wide>(0, std::min(a.right, b.right) - std::max(a.left, b.left)) *
                      std::max<Wide>(0, std::min(a.bottom, b.bottom) - std::max(a.top, b.top));
  return common / (a.Area() + b.Area() - common);
}
Wide OtaSigmoid(Wide z) {
  return 1 / (1 + std::exp(-z));
}
Wide Bce(Wide p, Wide y) {
  return -y * std::log(p) - (1 - y) * std::log(1 - p);
}

struct OtaObject {
  size_t label;
  OtaBox box;
  bool learnt;
};

struct OtaPoint {
  double stride, x, y;
  size_t level, cell;
  std::vector<Wide> score, box;
  Wide objectness;
  int object = -1;
  Wide target = 0;  // u
  bool ignored = false;

  OtaBox Proposed() const {
    const Wide cx = x + (box[0] - 0.5L) * stride, cy = y + (box[1] - 0.5L) * stride,
               w = std::exp(box[2]) * stride, h = std::exp(box[3]) * stride;
    return {cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2};
  }
};

// One image by the definition in the header, with a whole matrix of costs.
class OtaImage {
 public:
  OtaImage(const OtaSettings& settings, const Arrays& in, const std::vector<TShape>& shapes,
           int64_t image)
      : settings_(settings), classes_(static_cast<size_t>(shapes[0][1])) {
    const size_t levels = settings.strides.size();
    for (size_t l = 0; l < levels; ++l) {
      const int64_t h = shapes[l][2], w = shapes[l][3];
      for (int64_t i = 0; i < h * w; ++i) {
        const double stride = settings.strides[l];
        OtaPoint p{stride,
                   (static_cast<double>(i % w) + 0.5) * stride,
                   (static_cast<double>(i / w) + 0.5) * stride,
                   l,
                   static_cast<size_t>(i),
                   {},
                   {},
                   0};
        const auto at = [&](size_t map, int64_t channels, int64_t k) {
          return in[map * levels + l][static_cast<size_t>((image * channels + k) * h * w + i)];
        };
        for (int64_t k = 0; k < shapes[0][1]; ++k) p.score.push_back(at(0, shapes[0][1], k));
        for (int64_t k = 0; k < 4; ++k) p.box.push_back(at(1, 4, k));
        p.objectness = at(2, 1, 0);
        points.push_back(p);
      }
    }
    const int64_t most = shapes.back()[1];
    for (int64_t m = 0; m < most; ++m) {
      const double* row = &in.back()[static_cast<size_t>((image * most + m) * 6)];
      const OtaBox box{row[1], row[2], row[3], row[4]};
      if (row[0] < 0 || row[0] >= static_cast<double>(classes_) || !(box.right > box.left) ||
          !(box.bottom > box.top))
        continue;
      objects_.push_back({static_cast<size_t>(row[0]), box, row[5] == 0});
    }
    Assign();
  }

  std::vector<OtaPoint> points;

  int Found() const {
    return static_cast<int>(std::count_if(points.begin(), points.end(),
                                          [](const OtaPoint& p) { return p.object >= 0; }));
  }
  // The terms of a point, with the targets as they are.
  Wide LossOf(const OtaPoint& p) const {
    if (p.ignored) return 0;
    const bool found = p.object >= 0;
    Wide sum = settings_.objectness_weight * Bce(OtaSigmoid(p.objectness), found ? 1 : 0);
    if (!found) return sum;
    const OtaObject& o = objects_[static_cast<size_t>(p.object)];
    for (size_t k = 0; k < classes_; ++k)
      sum += settings_.class_weight * Bce(OtaSigmoid(p.score[k]), k == o.label ? p.target : 0);
    const Wide u = OtaOverlap(p.Proposed(), o.box);
    sum += settings_.box_weight * (1 - u * u);
    const Wide targets[] = {((o.box.left + o.box.right) / 2 - p.x) / p.stride + 0.5L,
                            ((o.box.top + o.box.bottom) / 2 - p.y) / p.stride + 0.5L,
                            std::log((o.box.right - o.box.left) / p.stride + 1e-8L),
                            std::log((o.box.bottom - o.box.top) / p.stride + 1e-8L)};
    for (size_t k = 0; k < 4; ++k) sum += settings_.l1_weight * std::abs(p.box[k] - targets[k]);
    return sum;
  }

 private:
  static bool Inside(const OtaPoint& p, const OtaObject& o) {
    return p.x > o.box.left && p.x < o.box.right && p.y > o.box.top && p.y < o.box.bottom;
  }
  bool Central(const OtaPoint& p, const OtaObject& o) const {
    return std::abs(p.x - (o.box.left + o.box.right) / 2) < settings_.radius * p.stride &&
           std::abs(p.y - (o.box.top + o.box.bottom) / 2) < settings_.radius * p.stride;
  }
  Wide Cost(const OtaPoint& p, const OtaObject& o) const {
    Wide sum = 0;
    for (size_t k = 0; k < classes_; ++k) {
      const Wide both = OtaSigmoid(p.score[k]) * OtaSigmoid(p.objectness);
      sum += Bce(std::sqrt(both), k == o.label ? 1 : 0);
    }
    sum -= settings_.overlap_cost * std::log(OtaOverlap(p.Proposed(), o.box) + 1e-8L);
    return Inside(p, o) && Central(p, o) ? sum : sum + 1e5L;
  }
  void Assign() {
    std::vector<size_t> near, wanted_by(points.size());
    for (size_t i = 0; i < points.size(); ++i) {
      if (std::any_of(objects_.begin(), objects_.end(), [&](const OtaObject& o) {
            return o.learnt && (Inside(points[i], o) || Central(points[i], o));
          }))
        near.push_back(i);
    }
    for (size_t m = 0; m < objects_.size(); ++m) {
      const OtaObject& o = objects_[m];
      if (!o.learnt) continue;
      std::vector<Wide> overlaps;
      std::vector<std::pair<Wide, size_t>> costs;
      for (const size_t i : near) {
        overlaps.push_back(OtaOverlap(points[i].Proposed(), o.box));
        costs.emplace_back(Cost(points[i], o), i);
      }
      std::sort(overlaps.rbegin(), overlaps.rend());
      std::sort(costs.begin(), costs.end());
      overlaps.resize(std::min(overlaps.size(), settings_.candidates));
      Wide sum = 0;
      for (const Wide u : overlaps) sum += u;
      costs.resize(std::min(costs.size(), std::max<size_t>(1, static_cast<size_t>(sum))));
      for (const auto& [cost, i] : costs) ++wanted_by[i], points[i].object = static_cast<int>(m);
    }
    for (size_t i = 0; i < points.size(); ++i) {
      if (wanted_by[i] > 1) GiveToCheapest(&points[i]);
      if (wanted_by[i] > 0) {
        points[i].target =
            OtaOverlap(points[i].Proposed(), objects_[static_cast<size_t>(points[i].object)].box);
      }
      points[i].ignored = points[i].object < 0 &&
                          std::any_of(objects_.begin(), objects_.end(), [&](const OtaObject& o) {
                            return !o.learnt && Inside(points[i], o);
                          });
    }
  }
  void GiveToCheapest(OtaPoint* p) const {
    Wide least = 1e30L;
    for (size_t m = 0; m < objects_.size(); ++m) {
      if (!objects_[m].learnt || !(Cost(*p, objects_[m]) < least)) continue;
      least = Cost(*p, objects_[m]);
      p->object = static_cast<int>(m);
    }
  }

  const OtaSettings settings_;
  const size_t classes_;
  std::vector<OtaObject> objects_;
};

struct OtaBatch {
  std::vector<OtaImage> images;
  Wide factor = 0;

  OtaBatch(const OtaSettings& settings, const Arrays& in, const std::vector<TShape>& shapes) {
    int found = 0;
    for (int64_t n = 0; n < shapes[0][0]; ++n) {
      images.emplace_back(settings, in, shapes, n);
      found += images.back().Found();
    }
    factor = static_cast<Wide>(shapes[0][0]) / std::max(found, 1);
  }
};

// By central differences of the terms of each point, whose targets stay.
Arrays OtaGradient(const OtaSettings& settings, const Arrays& in,
                   const std::vector<TShape>& shapes) {
  Arrays grads;
  for (const Values& map : in) grads.emplace_back(map.size());
  grads.back().clear();
  const size_t levels = settings.strides.size();
  OtaBatch batch(settings, in, shapes);
  for (size_t n = 0; n < batch.images.size(); ++n) {
    OtaImage& image = batch.images[n];
    for (OtaPoint& p : image.points) {
      // Of fourth order.
      const auto slope = [&](Wide* x) {
        const Wide step = 1e-4L, here = *x;
        const auto at = [&](Wide steps) {
          *x = here + steps * step;
          return image.LossOf(p);
        };
        const Wide quotient = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * step);
        *x = here;
        return static_cast<double>(settings.scale * batch.factor * quotient);
      };
      const auto place = [&](size_t map, size_t channels, size_t k) -> double& {
        const auto plane = static_cast<size_t>(shapes[p.level][2] * shapes[p.level][3]);
        return grads[map * levels + p.level][(n * channels + k) * plane + p.cell];
      };
      for (size_t k = 0; k < p.score.size(); ++k) place(0, p.score.size(), k) = slope(&p.score[k]);
      for (size_t k = 0; k < 4; ++k) place(1, 4, k) = slope(&p.box[k]);
      place(2, 1, 0) = slope(&p.objectness);
    }
  }
  return grads;
}

void ExamineOta(const std::string& name, const OtaSettings& settings,
                const std::vector<TShape>& shapes, const Values& labels, Kwargs more = {}) {
  OperatorCase c;
  c.op = "SimOtaLoss";
  c.name = "SimOtaLoss " + name;
  std::string strides = "(";
  for (const double s : settings.strides) strides += format("{},", s);
  c.kwargs = {{"strides", strides + ")"}};
  c.kwargs.insert(c.kwargs.end(), more.begin(), more.end());
  c.shapes = shapes;
  const size_t levels = settings.strides.size();
  c.inputs.assign(levels, Distinct(-2, 1.5));
  c.inputs.resize(2 * levels, Distinct(-0.4, 1.6));
  c.inputs.resize(3 * levels, Distinct(-1.5, 1));
  c.inputs.push_back(Cycle(labels));
  c.forward = [=](const Arrays& in, const Arrays&) {
    const OtaBatch batch(settings, in, shapes);
    Values losses;
    for (const OtaImage& image : batch.images) {
      Wide sum = 0;
      for (const OtaPoint& p : image.points) sum += image.LossOf(p);
      losses.push_back(static_cast<double>(sum * batch.factor));
    }
    return Arrays{losses};
  };
  c.gradient = [=](const Arrays& in, const Arrays&, const Arrays&) {
    return OtaGradient(settings, in, shapes);
  };
  c.tolerance = {2000, "overlaps, which are differences of coordinates"};
  RunCase(c);
}

// Of two images of 32x24 with up to three objects each: a large one with a small one in it, which
// want the same points, one smaller than the distance of points, one that nothing is learnt of.
const Values kTwoOtaImages = {1, 2.3,  1.1, 21.7, 19.2, 0, 0,  7.9,  6.2, 15.6, 14.3, 0,
                              2, 26.1, 3.3, 27.9, 5.2,  0, 0,  12.2, 5.1, 30.3, 22.4, 1,
                              2, 3.1,  2.2, 13.7, 12.9, 0, -1, -1,   -1,  -1,   -1,   -1};
const std::vector<TShape> kTwoOtaLevels = {{2, 3, 6, 8}, {2, 3, 3, 4}, {2, 4, 6, 8}, {2, 4, 3, 4},
                                           {2, 1, 6, 8}, {2, 1, 3, 4}, {2, 3, 6}};

}  // namespace

TEST_CASE("SimOtaLoss") {
  ExamineOta("two images", {.strides = {4, 8}}, kTwoOtaLevels, kTwoOtaImages);
  ExamineOta("with differences of the maps", {.strides = {4, 8}, .l1_weight = 1}, kTwoOtaLevels,
             kTwoOtaImages, {{"l1_weight", "1"}});
  ExamineOta("few candidates, close to centres",
             {.strides = {4, 8}, .candidates = 3, .radius = 1.25}, kTwoOtaLevels, kTwoOtaImages,
             {{"candidates", "3"}, {"center_radius", "1.25"}});
  ExamineOta("other weights",
             {.strides = {4, 8},
              .overlap_cost = 0.25,
              .box_weight = 2,
              .objectness_weight = 3,
              .class_weight = 0.5,
              .scale = 0.25},
             kTwoOtaLevels, kTwoOtaImages,
             {{"overlap_cost", "0.25"},
              {"box_weight", "2"},
              {"objectness_weight", "3"},
              {"class_weight", "0.5"},
              {"grad_scale", "0.25"}});
}

// Three objects nearly at one place: a point is of the one for which it costs least of all.
TEST_CASE("SimOtaLoss: objects that want the same points") {
  ExamineOta("twins", {.strides = {4}}, {{1, 2, 6, 6}, {1, 4, 6, 6}, {1, 1, 6, 6}, {1, 3, 6}},
             {0, 4.2, 4.1, 17.3, 18.2, 0, 0, 5.2, 3.1, 18.3, 17.2, 0, 1, 6, 6, 16, 16, 0});
}

TEST_CASE("SimOtaLoss: sizes") {
  ExamineOta("one point", {.strides = {16}}, {{1, 1, 1, 1}, {1, 4, 1, 1}, {1, 1, 1, 1}, {1, 1, 6}},
             {0, 2, 3, 12, 14, 0});
  ExamineOta("no rows", {.strides = {16}}, {{2, 2, 2, 1}, {2, 4, 2, 1}, {2, 1, 2, 1}, {2, 0, 6}},
             {0});
  ExamineOta("no image", {.strides = {16}}, {{0, 2, 2, 1}, {0, 4, 2, 1}, {0, 1, 2, 1}, {0, 3, 6}},
             {0});
  // A class that the net does not have, boxes without an area or with their corners exchanged.
  ExamineOta("no objects", {.strides = {8}}, {{1, 2, 3, 3}, {1, 4, 3, 3}, {1, 1, 3, 3}, {1, 4, 6}},
             {2, 2, 3, 12, 14, 0, 0, 5, 5, 5, 9, 0, 1, 9, 9, 3, 3, 0, -1, 1, 1, 9, 9, 0});
  // Far from every point.
  ExamineOta("beyond the image", {.strides = {4}},
             {{1, 2, 3, 3}, {1, 4, 3, 3}, {1, 1, 3, 3}, {1, 1, 6}}, {0, 90, 90, 99, 99, 0});
}

TEST_CASE("SimOtaLoss: shapes") {
  const auto op = TestRegistry().Create("SimOtaLoss", {{"strides", "(8, 16)"}});
  CHECK(op->ListArguments() == std::vector<std::string>{"score0", "score1", "box0", "box1",
                                                        "objectness0", "objectness1", "label"});
  CHECK(!op->NeedsHeadGradient());
  CHECK(op->HasGradient(5));
  CHECK(!op->HasGradient(6));
  std::vector<TShape> in(7), out(1), aux;
  in[0] = {2, 3, 4, 4}, in[1] = {2, 3, 2, 2};
  CHECK(!op->InferShape(&in, &out, &aux));  // how many objects is for the data to say
  CHECK(out[0] == TShape{2});
  in[6] = {2, 7, 6};
  CHECK(op->InferShape(&in, &out, &aux));
  CHECK(in[2] == TShape{2, 4, 4, 4});
  CHECK(in[5] == TShape{2, 1, 2, 2});
  const auto refuses = [&](size_t i, const TShape& shape, const char* text) {
    std::vector<TShape> odd = in;
    odd[i] = shape;
    CHECK(Says(MessageOf([&] { op->InferShape(&odd, &out, &aux); }), text));
  };
  refuses(6, {2, 7, 5}, "SimOtaLoss: label has shape");
  refuses(5, {2, 3, 2, 2}, "SimOtaLoss: objectness1 has shape");
  refuses(4, {2, 1, 4, 5}, "SimOtaLoss: objectness0 has shape");
  refuses(3, {2, 5, 2, 2}, "SimOtaLoss: box1 has shape");
  refuses(2, {3, 4, 4, 4}, "SimOtaLoss: box0 has shape");
  refuses(0, {2, 3, 4}, "SimOtaLoss: score0 has shape");
  CHECK(Says(MessageOf([] {
               (void)TestRegistry().Create("SimOtaLoss", {{"strides", "(0,)"}});
             }),
             "expected one to 8 positive numbers"));
}

}  // namespace mxtrain::test
