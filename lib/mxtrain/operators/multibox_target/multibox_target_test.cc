// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/support/box_overlap.h"
#include "tests/support/error_message.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

struct TargetSettings {
  double overlap = 0.5, ignore = -1, ratio = -1, least = 0.5;
  int minimum = 0;
  Values variances = {0.1, 0.1, 0.2, 0.2};
};
struct TargetSizes {
  size_t images, objects, columns, classes, anchors;
};

// An image by the definition, every step through all pairs.
class TargetImage {
 public:
  TargetImage(const TargetSettings& target, const TargetSizes& sizes, const double* anchors,
              const double* labels, const double* logits)
      : target_(target), sizes_(sizes), anchors_(anchors), labels_(labels), logits_(logits) {
    while (objects_ < sizes.objects && Label(objects_)[0] != -1) ++objects_;
    object_.assign(sizes.anchors, -1);
    Match();
    FindOverlapping();
    ChooseBackground();
  }
  void Append(Arrays* out) const {
    for (size_t a = 0; a < sizes_.anchors; ++a) {
      const bool finds = object_[a] >= 0;
      double offsets[4] = {};
      if (finds) {
        const double *b = Label(static_cast<size_t>(object_[a])) + 1, *c = anchors_ + a * 4;
        const double w = c[2] - c[0], h = c[3] - c[1];
        offsets[0] = (b[0] + b[2] - c[0] - c[2]) / 2 / w;
        offsets[1] = (b[1] + b[3] - c[1] - c[3]) / 2 / h;
        offsets[2] = std::log((b[2] - b[0]) / w);
        offsets[3] = std::log((b[3] - b[1]) / h);
      }
      for (size_t k = 0; k < 4; ++k) {
        (*out)[0].push_back(offsets[k] / target_.variances[k]);
        (*out)[1].push_back(finds ? 1 : 0);
      }
      (*out)[2].push_back(finds            ? Label(static_cast<size_t>(object_[a]))[0] + 1
                          : background_[a] ? 0
                                           : target_.ignore);
    }
  }

 private:
  const double* Label(size_t m) const { return labels_ + m * sizes_.columns; }
  double With(size_t a, size_t m) const { return BoxOverlap(anchors_ + a * 4, Label(m) + 1); }
  void Match() {
    std::vector<bool> taken(objects_);
    while (true) {
      double best = 1e-6;
      size_t anchor = 0, object = objects_;
      for (size_t a = 0; a < sizes_.anchors; ++a) {
        for (size_t m = 0; m < objects_; ++m) {
          if (object_[a] < 0 && !taken[m] && With(a, m) > best)
            best = With(a, m), anchor = a, object = m;
        }
      }
      if (object == objects_) return;
      taken[object] = true;
      object_[anchor] = static_cast<int>(object);
    }
  }
  void FindOverlapping() {
    most_.assign(sizes_.anchors, -1);
    for (size_t a = 0; a < sizes_.anchors; ++a) {
      int object = -1;
      for (size_t m = 0; m < objects_; ++m) {
        if (With(a, m) > most_[a]) most_[a] = With(a, m), object = static_cast<int>(m);
      }
      if (object_[a] < 0 && target_.overlap > 0 && most_[a] > target_.overlap) object_[a] = object;
    }
  }
  void ChooseBackground() {
    background_.assign(sizes_.anchors, target_.ratio <= 0 && objects_ > 0);
    if (target_.ratio <= 0) return;
    std::vector<size_t> candidates;
    for (size_t a = 0; a < sizes_.anchors; ++a) {
      if (object_[a] < 0 && most_[a] < target_.least) candidates.push_back(a);
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [this](size_t a, size_t b) { return Background(a) < Background(b); });
    const auto finding =
        std::count_if(object_.begin(), object_.end(), [](int m) { return m >= 0; });
    const double wanted = std::max(std::floor(static_cast<double>(finding) * target_.ratio),
                                   static_cast<double>(target_.minimum));
    if (static_cast<double>(candidates.size()) > wanted)
      candidates.resize(static_cast<size_t>(wanted));
    for (const size_t a : candidates) background_[a] = true;
  }
  double Background(size_t a) const {
    double sum = 0;
    for (size_t k = 0; k < sizes_.classes; ++k) sum += std::exp(logits_[k * sizes_.anchors + a]);
    return std::exp(logits_[a]) / sum;
  }

  const TargetSettings target_;
  const TargetSizes sizes_;
  const double *anchors_, *labels_, *logits_;
  size_t objects_ = 0;
  std::vector<int> object_;  // that the anchor finds; -1: none
  Values most_;              // overlap
  std::vector<bool> background_;
};

// Anchors of a grid of 4x4, three of each cell, in sixteenths, and twice the same at the end.
Values GridAnchors() {
  Values boxes;
  for (int i = 0; i < 48; ++i) {
    const double x = i / 3 % 4 * 0.25 + 0.125, y = i / 12 * 0.25 + 0.125;
    const double half_w = i % 3 == 1 ? 0.25 : 0.125, half_h = i % 3 == 2 ? 0.1875 : 0.125;
    boxes.insert(boxes.end(), {x - half_w, y - half_h, x + half_w, y + half_h});
  }
  for (int k = 0; k < 2; ++k) boxes.insert(boxes.end(), {0.25, 0.25, 0.75, 0.75});
  return boxes;
}
constexpr int64_t kGridAnchors = 50;

// Of four images: some objects; one twice, and one that only a corner of an anchor reaches; none,
// though rows come behind; as many as there are rows, of which one is nowhere near an anchor.
const Values kTargetLabels = {
    2,  0.0625, 0.125, 0.4375, 0.5,   0, 1,  0.5,    0.5,   0.8125, 0.9375, 0,
    0,  0.5,    0,     0.625,  0.125, 0, -1, -1,     -1,    -1,     -1,     0,
    1,  0.25,   0.25,  0.75,   0.75,  1, 1,  0.25,   0.25,  0.75,   0.75,   1,
    0,  1.125,  1.125, 1.375,  1.5,   0, 3,  0.25,   0.25,  0.75,   0.75,   1,
    -1, -1,     -1,    -1,     -1,    0, 1,  0.25,   0.25,  0.75,   0.75,   0,
    -1, -1,     -1,    -1,     -1,    0, -1, -1,     -1,    -1,     -1,     0,
    0,  0,      0,     1,      1,     0, 1,  0,      0.125, 0.3125, 0.375,  0,
    2,  2,      2,     2.5,    2.5,   0, 2,  0.6875, 0.125, 0.9375, 0.5,    0};

void ExamineTarget(const TargetSettings& t, int64_t images = 4,
                   const std::vector<DType>& types = kAllFloatingTypes) {
  OperatorCase c;
  c.op = "MultiBoxTarget";
  c.name = format("MultiBoxTarget of {} images, overlap {} ratio {} below {} at least {}", images,
                  t.overlap, t.ratio, t.least, t.minimum);
  c.kwargs = {{"overlap_threshold", std::to_string(t.overlap)},
              {"ignore_label", std::to_string(t.ignore)},
              {"negative_mining_ratio", std::to_string(t.ratio)},
              {"negative_mining_thresh", std::to_string(t.least)},
              {"minimum_negative_samples", std::to_string(t.minimum)},
              {"variances", format("({}, {}, {}, {})", t.variances[0], t.variances[1],
                                   t.variances[2], t.variances[3])}};
  const TargetSizes sizes{static_cast<size_t>(images), 4, 6, 3, static_cast<size_t>(kGridAnchors)};
  c.shapes = {{1, kGridAnchors, 4}, {images, 4, 6}, {images, 3, kGridAnchors}};
  c.inputs = {Cycle(GridAnchors()), Cycle(kTargetLabels), Uniform(-2, 2)};
  c.forward = [=](const Arrays& in, const Arrays&) {
    Arrays out(3);
    for (size_t n = 0; n < sizes.images; ++n) {
      TargetImage(t, sizes, in[0].data(), in[1].data() + n * sizes.objects * sizes.columns,
                  in[2].data() + n * sizes.classes * sizes.anchors)
          .Append(&out);
    }
    return out;
  };
  c.backward = false;
  c.types = types;
  c.tolerance = {64, "quotients of differences of coordinates, over variances"};
  RunCase(c);
}

TEST_CASE("MultiBoxTarget") {
  ExamineTarget({});
  ExamineTarget({.overlap = 0.25, .ignore = -7});
  ExamineTarget({.overlap = 0});  // what is matched, and no more
  ExamineTarget({.overlap = -1, .variances = {1, 0.5, 0.25, 0.125}});
  ExamineTarget({}, 1);
  ExamineTarget({}, 0);
}

TEST_CASE("MultiBoxTarget: hard negatives") {
  const std::vector<DType> types = {DType::kFloat32, DType::kFloat64};
  ExamineTarget({.ratio = 3}, 4, types);
  ExamineTarget({.ratio = 1.5, .least = 0.25}, 4, types);
  ExamineTarget({.overlap = 0, .ratio = 2, .least = 0.125}, 4, types);
  ExamineTarget({.ignore = 9, .ratio = 0.5, .minimum = 6}, 4, types);
  ExamineTarget({.ratio = 1000}, 4, types);                  // as many as there are
  ExamineTarget({.ratio = 1e30, .least = 1e-3}, 2, types);   // those that overlap nothing
  ExamineTarget({.ratio = 3, .minimum = 100000}, 3, types);  // of images without objects, too
}

TEST_CASE("MultiBoxTarget: labels of any length") {
  OperatorCase c;
  c.op = "_contrib_MultiBoxTarget";
  c.inputs = {Cycle({0, 0, 1, 1, 0, 0, 0.5, 0.5}), Cycle({4, 0, 0, 0.5, 1}), Constant(0)};
  c.backward = false;
  c.name = "MultiBoxTarget of no rows";
  c.shapes = {{1, 2, 4}, {1, 0, 5}, {1, 1, 2}};
  c.forward = [](const Arrays&, const Arrays&) { return Arrays{Values(8), Values(8), {-1, -1}}; };
  RunCase(c);
  c.name = "MultiBoxTarget of one object, which both anchors overlap by a half";
  c.shapes[1] = {1, 1, 5};
  c.kwargs = {{"variances", "(1, 1, 1, 1)"}};
  c.forward = [](const Arrays&, const Arrays&) {
    return Arrays{{-0.25, 0, std::log(0.5), 0, 0, 0, 0, 0}, {1, 1, 1, 1, 0, 0, 0, 0}, {5, 0}};
  };
  RunCase(c);
}

TEST_CASE("MultiBoxTarget: parameters and shapes that it does not take") {
  const auto message = [](const Kwargs& kwargs, const TShape& anchor, const TShape& label,
                          const TShape& scores) {
    return MessageOf([&] {
      const auto op = TestRegistry().Create("MultiBoxTarget", kwargs);
      std::vector<TShape> in = {anchor, label, scores}, out(3), aux;
      if (!op->InferShape(&in, &out, &aux)) return;
      const int64_t images = in[1][0], anchors = in[0][1];
      CHECK(out ==
            std::vector<TShape>{{images, 4 * anchors}, {images, 4 * anchors}, {images, anchors}});
    });
  };
  const TShape anchor{1, 5, 4}, label{2, 3, 5}, scores{2, 4, 5};
  CHECK(message({}, anchor, label, scores) == "");
  CHECK(message({}, TShape(), label, scores) == "");
  CHECK(message({}, anchor, {TShape::kUnknown, 3, 8}, scores) == "");
  CHECK(message({}, anchor, {2, 3, 4}, scores) ==
        "_contrib_MultiBoxTarget: label has shape [2, 3, 4]; expected [images, objects, columns] "
        "with at least 5 columns");
  CHECK(message({}, {2, 5, 4}, label, scores) ==
        "_contrib_MultiBoxTarget: anchor has shape [2, 5, 4], but [1, ?, 4] was expected");
  CHECK(Says(message({}, anchor, label, {2, 4, 6}), "cls_pred has shape [2, 4, 6]"));
  CHECK(Says(message({}, anchor, label, {3, 4, 5}), "label has shape [2, 3, 5]"));
  CHECK(Says(message({}, {1, 0, 4}, label, {2, 4, 0}), "there is no anchor"));
  CHECK(Says(message({}, anchor, label, {2, 0, 5}), "there is no class"));
  const auto refused = [&](const Kwargs& kwargs) { return message(kwargs, anchor, label, scores); };
  CHECK(Says(refused({{"variances", "(1, 1, 1)"}}), "expected four numbers"));
  CHECK(Says(refused({{"variances", "(1, 1, 1, -1)"}}), "_contrib_MultiBoxTarget: variances"));
  CHECK(refused({{"negative_mining_ratio", "3"}, {"negative_mining_thresh", "0"}}) ==
        "_contrib_MultiBoxTarget: negative_mining_thresh = 0: expected a number above 0");
  CHECK(refused({{"negative_mining_thresh", "0"}}) == "");  // not used
  CHECK(Says(refused({{"minimum_negative_samples", "-1"}}),
             "_contrib_MultiBoxTarget: minimum_negative_samples = '-1'"));
  const auto op = TestRegistry().Create("MultiBoxTarget", {});
  CHECK(op->ListOutputs() == std::vector<std::string>{"loc_target", "loc_mask", "cls_target"});
  CHECK(op->NeedsHeadGradient());
  for (const int argument : {0, 1, 2}) CHECK(!op->HasGradient(argument));
}

}  // namespace
}  // namespace mxtrain::test
