// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/box_overlap.h"
#include "tests/support/error_message.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

struct AnchorSettings {
  double threshold = 0.5, ratio = 3, box_weight = 1, scale = 1;
  Values variances = {0.1, 0.1, 0.2, 0.2};
  bool center = false;
};
constexpr double kSceneWidth = 40, kSceneHeight = 30;

// Of more digits than the kernel, for difference quotients.
using Digits = long double;

// Which number a difference quotient moves: one of the scores, then of the offsets.
struct Moved {
  size_t number = 0;
  Digits by = 0;
};

// A batch by the definition in the header. Arrays: scores, offsets, anchors, label.
class AnchorScene {
 public:
  AnchorScene(const AnchorSettings& settings, const Arrays& in, const std::vector<TShape>& shapes)
      : settings_(settings),
        in_(in),
        images_(static_cast<size_t>(shapes[0][0])),
        anchors_(static_cast<size_t>(shapes[0][1])),
        columns_(static_cast<size_t>(shapes[0][2])),
        objects_(static_cast<size_t>(shapes[3][1])) {
    for (size_t n = 0; n < images_; ++n) {
      for (const int role : RolesOf(n)) {
        roles_.push_back(role);
        positives_ += role >= 0 ? 1 : 0;
      }
    }
  }
  Digits Factor() const {
    return static_cast<Digits>(images_) / static_cast<Digits>(std::max(positives_, 1));
  }
  Values Losses() const {
    Values losses;
    for (size_t n = 0; n < images_; ++n) {
      Digits sum = 0;
      for (size_t a = 0; a < anchors_; ++a) sum += Term(n * anchors_ + a);
      losses.push_back(static_cast<double>(sum * Factor()));
    }
    return losses;
  }
  // What anchor `row` of all images adds, with its role as it is.
  Digits Term(size_t row, Moved moved = {}) const {
    if (roles_[row] == kNothing) return 0;
    std::vector<Digits> x;
    for (size_t k = 0; k < columns_; ++k) x.push_back(in_[0][row * columns_ + k]);
    for (size_t k = 0; k < 4; ++k) x.push_back(in_[1][row * 4 + k]);
    if (moved.by != 0) x[moved.number] += moved.by;
    Digits sum = 0;
    for (size_t k = 0; k < columns_; ++k) sum += std::exp(x[k]);
    if (roles_[row] == kNone) return std::log(sum) - x[0];
    const double* object = Label(row / anchors_, static_cast<size_t>(roles_[row]));
    Digits loss = std::log(sum) - x[static_cast<size_t>(object[0]) + 1];
    const Values anchor = Anchor(row % anchors_);
    for (size_t k = 0; k < 4; ++k) {
      const size_t axis = k % 2;
      const Digits own = anchor[axis + 2] - anchor[axis],
                   other = object[axis + 3] - object[axis + 1];
      const Digits between =
          (object[axis + 3] + object[axis + 1] - anchor[axis + 2] - anchor[axis]) / Digits(2);
      const Digits target = k < 2 ? between / own : std::log(other / own);
      const Digits off = std::abs(x[columns_ + k] - target / settings_.variances[k]);
      loss += settings_.box_weight * (off < 1 ? off * off / 2 : off - Digits(0.5));
    }
    return loss;
  }

 private:
  static constexpr int kNone = -1, kNothing = -2;

  const double* Label(size_t n, size_t m) const { return &in_[3][(n * objects_ + m) * 6]; }
  bool IsObject(size_t n, size_t m) const {
    const double* x = Label(n, m);
    return x[0] >= 0 && x[0] < static_cast<double>(columns_ - 1) && x[3] > x[1] && x[4] > x[2];
  }
  Values Anchor(size_t a) const {
    const double* x = &in_[2][a * 4];
    Values box = {x[0], x[1], x[2], x[3]};
    if (settings_.center)
      box = {x[0] - x[2] / 2, x[1] - x[3] / 2, x[0] + x[2] / 2, x[1] + x[3] / 2};
    for (size_t k = 0; k < 4; ++k) box[k] *= k % 2 == 0 ? kSceneWidth : kSceneHeight;
    return box;
  }
  double With(size_t a, size_t n, size_t m) const {
    return BoxOverlap(Anchor(a).data(), Label(n, m) + 1);
  }
  bool IsIgnored(size_t a, size_t n) const {
    for (size_t m = 0; m < objects_; ++m) {
      if (!IsObject(n, m) || Label(n, m)[5] == 0) continue;
      const Values own = Anchor(a);
      const double* x = Label(n, m) + 1;
      const double w = std::min(own[2], x[2]) - std::max(own[0], x[0]),
                   h = std::min(own[3], x[3]) - std::max(own[1], x[1]);
      if (w > 0 && h > 0 && w * h >= settings_.threshold * (own[2] - own[0]) * (own[3] - own[1]))
        return true;
    }
    return false;
  }
  std::vector<int> RolesOf(size_t n) const {
    std::vector<int> roles(anchors_, kNone);
    for (size_t a = 0; a < anchors_; ++a) {
      double most = 0;
      for (size_t m = 0; m < objects_; ++m) {
        if (!IsObject(n, m) || Label(n, m)[5] != 0 || With(a, n, m) <= most) continue;
        most = With(a, n, m);
        roles[a] = static_cast<int>(m);
      }
      if (most < settings_.threshold) roles[a] = IsIgnored(a, n) ? kNothing : kNone;
    }
    for (size_t m = 0; m < objects_; ++m) {
      if (!IsObject(n, m) || Label(n, m)[5] != 0) continue;
      double most = 0;
      size_t best = 0;
      for (size_t a = 0; a < anchors_; ++a) {
        if (With(a, n, m) > most) most = With(a, n, m), best = a;
      }
      if (most > 0) roles[best] = static_cast<int>(m);
    }
    DropEasyOnes(n, &roles);
    return roles;
  }
  void DropEasyOnes(size_t n, std::vector<int>* roles) const {
    std::vector<std::pair<double, size_t>> background;
    double finding = 0;
    for (size_t a = 0; a < anchors_; ++a) {
      finding += (*roles)[a] >= 0 ? 1 : 0;
      if ((*roles)[a] != kNone) continue;
      const double* x = &in_[0][(n * anchors_ + a) * columns_];
      double sum = 0;
      for (size_t k = 0; k < columns_; ++k) sum += std::exp(x[k]);
      background.emplace_back(x[0] - std::log(sum), a);
    }
    std::stable_sort(background.begin(), background.end());
    for (size_t i = 0; i < background.size(); ++i) {
      if (static_cast<double>(i) >= std::ceil(settings_.ratio * finding))
        (*roles)[background[i].second] = kNothing;
    }
  }

  const AnchorSettings settings_;
  const Arrays& in_;
  const size_t images_, anchors_, columns_, objects_;
  std::vector<int> roles_;
  int positives_ = 0;
};

// By central differences of fourth order of the terms of each anchor, whose roles stay.
Arrays DifferencesOf(const AnchorSettings& settings, const Arrays& in,
                     const std::vector<TShape>& shapes) {
  const AnchorScene scene(settings, in, shapes);
  const auto columns = static_cast<size_t>(shapes[0][2]);
  Arrays grads = {{}, {}, {}, {}};
  for (size_t row = 0; row * columns < in[0].size(); ++row) {
    for (size_t number = 0; number < columns + 4; ++number) {
      const Digits step = 1e-4L;
      const auto at = [&](Digits steps) { return scene.Term(row, {number, steps * step}); };
      const Digits slope = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * step);
      grads[number < columns ? 0 : 1].push_back(
          static_cast<double>(settings.scale * scene.Factor() * slope));
    }
  }
  return grads;
}

void ExamineAnchorLoss(const std::string& name, const AnchorSettings& settings,
                       const std::vector<TShape>& shapes, const Values& anchors,
                       const Values& labels) {
  OperatorCase c;
  c.op = "AnchorBoxLoss";
  c.name = "AnchorBoxLoss " + name;
  std::string variances = "(";
  for (const double v : settings.variances) variances += format("{},", v);
  c.kwargs = {{"size", "(30, 40)"},
              {"overlap_threshold", std::to_string(settings.threshold)},
              {"negative_ratio", std::to_string(settings.ratio)},
              {"box_weight", std::to_string(settings.box_weight)},
              {"grad_scale", std::to_string(settings.scale)},
              {"variances", variances + ")"},
              {"format", settings.center ? "center" : "corner"}};
  c.shapes = shapes;
  c.inputs = {Distinct(-2, 2), Distinct(-3, 3), Cycle(anchors), Cycle(labels)};
  c.forward = [=](const Arrays& in, const Arrays&) {
    return Arrays{AnchorScene(settings, in, shapes).Losses()};
  };
  c.gradient = [=](const Arrays& in, const Arrays&, const Arrays&) {
    return DifferencesOf(settings, in, shapes);
  };
  c.tolerance = {500, "differences of coordinates over sides and variances"};
  RunCase(c);
}

// Three of each cell of a grid of 3 x 4, in shares of the image: a large one, a wide one, a high
// one.
Values LossAnchors(bool center) {
  Values anchors;
  for (int y = 0; y < 3; ++y) {
    for (int x = 0; x < 4; ++x) {
      const double at_x = (x + 0.5) / 4, at_y = (y + 0.5) / 3;
      for (const auto& [w, h] : {std::pair{0.41, 0.52}, {0.5, 0.3}, {0.2, 0.45}}) {
        if (center) {
          anchors.insert(anchors.end(), {at_x, at_y, w, h});
        } else {
          anchors.insert(anchors.end(), {at_x - w / 2, at_y - h / 2, at_x + w / 2, at_y + h / 2});
        }
      }
    }
  }
  return anchors;
}

// Of three images of 40 x 30 with up to four objects: two that want the same anchor, a small one
// that no anchor overlaps by half, one that nothing is learnt of, none at all.
const Values kThreeImages = {
    1,  2.3,  1.1, 21.7, 19.2, 0,  0,  7.9, 6.2, 12.6, 9.3,  0,  2,  6.1, 5.3, 13.9, 9.9, 0,
    0,  22.2, 5.1, 39.3, 28.4, 1,  2,  3.1, 2.2, 13.7, 18.9, 0,  2,  3.0, 2.1, 13.8, 19,  0,
    1,  20,   8,   35,   24,   0,  -1, -1,  -1,  -1,   -1,   -1, -1, -1,  -1,  -1,   -1,  -1,
    -1, -1,   -1,  -1,   -1,   -1, -1, -1,  -1,  -1,   -1,   -1, -1, -1,  -1,  -1,   -1,  -1};
const std::vector<TShape> kThirtySixAnchors = {{3, 36, 4}, {3, 36, 4}, {1, 36, 4}, {3, 4, 6}};

TEST_CASE("AnchorBoxLoss") {
  const Values anchors = LossAnchors(false);
  ExamineAnchorLoss("three images", {}, kThirtySixAnchors, anchors, kThreeImages);
  ExamineAnchorLoss("low threshold", {.threshold = 0.3}, kThirtySixAnchors, anchors, kThreeImages);
  ExamineAnchorLoss("a fraction of a background", {.ratio = 0.7}, kThirtySixAnchors, anchors,
                    kThreeImages);
  ExamineAnchorLoss("no background", {.ratio = 0}, kThirtySixAnchors, anchors, kThreeImages);
  ExamineAnchorLoss("all of the background", {.ratio = 1000}, kThirtySixAnchors, anchors,
                    kThreeImages);
  ExamineAnchorLoss("weights", {.box_weight = 2.5, .scale = 0.25, .variances = {1, 0.5, 0.25, 2}},
                    kThirtySixAnchors, anchors, kThreeImages);
  ExamineAnchorLoss("centers", {.center = true}, kThirtySixAnchors, LossAnchors(true),
                    kThreeImages);
}

TEST_CASE("AnchorBoxLoss: sizes") {
  const Values one = {0.1, 0.1, 0.9, 0.8};
  ExamineAnchorLoss("of one anchor", {}, {{1, 1, 2}, {1, 1, 4}, {1, 1, 4}, {1, 1, 6}}, one,
                    {0, 2, 3, 12, 14, 0});
  ExamineAnchorLoss("of no rows", {}, {{2, 2, 3}, {2, 2, 4}, {1, 2, 4}, {2, 0, 6}}, one, {0});
  ExamineAnchorLoss("of no image", {}, {{0, 2, 3}, {0, 2, 4}, {1, 2, 4}, {0, 3, 6}}, one, {0});
  // A class that the net does not have, a box without an area, one with its corners exchanged, one
  // outside of every anchor.
  ExamineAnchorLoss("of no objects", {}, {{1, 1, 3}, {1, 1, 4}, {1, 1, 4}, {1, 4, 6}}, one,
                    {2, 2, 3, 12, 14, 0, 0, 5, 5, 5, 9, 0, 1, 9, 9, 3, 3, 0, 1, 0, 0, 3, 2, 0});
}

TEST_CASE("AnchorBoxLoss: shapes and types") {
  const auto op = TestRegistry().Create("AnchorBoxLoss", {{"size", "(30, 40)"}});
  CHECK(op->ListArguments() == std::vector<std::string>{"scores", "offsets", "anchors", "label"});
  CHECK(!op->NeedsHeadGradient());
  CHECK(op->HasGradient(1));
  CHECK(!op->HasGradient(2));
  CHECK(!op->HasGradient(3));
  std::vector<TShape> in = {{2, TShape::kUnknown, 4}, TShape(), {1, 5, 4}, TShape()}, out(1), aux;
  CHECK(!op->InferShape(&in, &out, &aux));  // how many objects is for the data to say
  CHECK(out[0] == TShape{2});
  in[3] = {2, 7, 6};
  CHECK(op->InferShape(&in, &out, &aux));
  CHECK(in[1] == TShape{2, 5, 4});
  in = {{TShape::kUnknown, 5, 4}, TShape(), TShape(), {3, 7, 6}};
  out = {TShape()};
  CHECK(op->InferShape(&in, &out, &aux));
  CHECK(in[0] == TShape{3, 5, 4});
  in[3] = {3, 7, 5};
  CHECK(
      Says(MessageOf([&] { op->InferShape(&in, &out, &aux); }), "AnchorBoxLoss: label has shape"));
  std::vector<DType> types = {DType::kFloat16, DType::kUnknown, DType::kUnknown, DType::kUnknown},
                     result(1, DType::kUnknown), none;
  CHECK(op->InferType(&types, &result, &none));
  CHECK(types[2] == DType::kFloat16);
  CHECK(types[3] == DType::kFloat32);
  CHECK(Says(
      MessageOf([] {
        TestRegistry().Create("AnchorBoxLoss", {{"size", "(3, 4)"}, {"overlap_threshold", "0"}});
      }),
      "AnchorBoxLoss: overlap_threshold = "));
}

}  // namespace
}  // namespace mxtrain::test
