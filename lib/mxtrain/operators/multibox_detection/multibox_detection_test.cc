// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/support/box_overlap.h"
#include "tests/support/error_message.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

struct Detector {
  int64_t images = 1, classes = 3, anchors = 5;
  double threshold = 0.01, overlap = 0.5;
  int most = -1;
  bool clip = true, force = false;
  Values variances = {0.1, 0.1, 0.2, 0.2};
};

struct DetectorRow {
  double label, score, box[4];
};

DetectorRow DecodedRow(const Detector& d, const double* offset, const double* anchor) {
  const double w = anchor[2] - anchor[0], h = anchor[3] - anchor[1];
  const double x = anchor[0] + w / 2 + offset[0] * d.variances[0] * w,
               y = anchor[1] + h / 2 + offset[1] * d.variances[1] * h;
  const double half_w = w * std::exp(offset[2] * d.variances[2]) / 2,
               half_h = h * std::exp(offset[3] * d.variances[3]) / 2;
  DetectorRow row{0, 0, {x - half_w, y - half_h, x + half_w, y + half_h}};
  for (double& corner : row.box) corner = d.clip ? std::clamp(corner, 0.0, 1.0) : corner;
  return row;
}
// The rows of an image, as MXNet's description of the operator says.
std::vector<DetectorRow> DetectorRows(const Detector& d, const double* scores,
                                      const double* offsets, const double* anchors) {
  std::vector<DetectorRow> found;
  for (int64_t i = 0; i < d.anchors; ++i) {
    double best = -1, label = -1;
    for (int64_t k = 1; k < d.classes; ++k) {
      const double score = scores[k * d.anchors + i];
      if (score > best) best = score, label = static_cast<double>(k - 1);
    }
    if (label < 0 || best < d.threshold) continue;
    found.push_back(DecodedRow(d, offsets + i * 4, anchors + i * 4));
    found.back().label = label;
    found.back().score = best;
  }
  if (d.overlap <= 0 || d.overlap > 1) return found;
  std::vector<DetectorRow> rows = found;
  std::stable_sort(rows.begin(), rows.end(),
                   [](const DetectorRow& a, const DetectorRow& b) { return a.score > b.score; });
  const size_t most = d.most > 0 ? std::min(rows.size(), static_cast<size_t>(d.most)) : rows.size();
  for (size_t i = most; i < rows.size(); ++i) {
    rows[i] = found[i];
    rows[i].label = -1;
  }
  for (size_t i = 0; i < most; ++i) {
    for (size_t j = i + 1; j < most; ++j) {
      if (rows[i].label < 0 || rows[j].label < 0) continue;
      if (!d.force && rows[i].label != rows[j].label) continue;
      if (BoxOverlap(rows[i].box, rows[j].box) >= d.overlap) rows[j].label = -1;
    }
  }
  return rows;
}

// Boxes in sixteenths around a few centers.
Values DetectorAnchors(int64_t count) {
  std::mt19937 random(7);
  const auto draw = [&random](unsigned n) { return static_cast<double>(random() % n) / 16; };
  Values boxes;
  for (int64_t i = 0; i < count; ++i) {
    const double left = draw(4) + 0.25 * static_cast<double>(i % 3), top = draw(8);
    boxes.insert(boxes.end(), {left, top, left + 0.125 + draw(4), top + 0.125 + draw(6)});
  }
  return boxes;
}

void ExamineDetection(const Detector& d) {
  OperatorCase c;
  c.op = "MultiBoxDetection";
  c.name = format("MultiBoxDetection {} x {} x {} threshold {} nms {} topk {} clip {} force {}",
                  d.images, d.classes, d.anchors, d.threshold, d.overlap, d.most, d.clip, d.force);
  c.kwargs = {{"threshold", std::to_string(d.threshold)},
              {"nms_threshold", std::to_string(d.overlap)},
              {"nms_topk", std::to_string(d.most)},
              {"clip", d.clip ? "True" : "False"},
              {"force_suppress", d.force ? "True" : "False"},
              {"variances", format("({}, {}, {}, {})", d.variances[0], d.variances[1],
                                   d.variances[2], d.variances[3])}};
  c.shapes = {{d.images, d.classes, d.anchors}, {d.images, 4 * d.anchors}, {1, d.anchors, 4}};
  c.inputs = {Distinct(0, 1), Uniform(-2, 2), Cycle(DetectorAnchors(d.anchors))};
  c.forward = [d](const Arrays& in, const Arrays&) {
    Values out(static_cast<size_t>(d.images * d.anchors * 6), -1);
    for (int64_t n = 0; n < d.images; ++n) {
      auto to = out.begin() + n * d.anchors * 6;
      for (const DetectorRow& row : DetectorRows(d, in[0].data() + n * d.classes * d.anchors,
                                                 in[1].data() + n * d.anchors * 4, in[2].data())) {
        *to++ = row.label;
        *to++ = row.score;
        to = std::copy(std::begin(row.box), std::end(row.box), to);
      }
    }
    return Arrays{out};
  };
  c.backward = false;
  c.types = kAllFloatingTypes;
  c.tolerance = {32, "an exponential times a side"};
  RunCase(c);
}

TEST_CASE("MultiBoxDetection") {
  ExamineDetection({.images = 2, .anchors = 43});
  ExamineDetection({.images = 3, .classes = 5, .anchors = 37, .overlap = 0.25});
  ExamineDetection({.images = 2, .anchors = 43, .overlap = 0.25, .force = true});
  ExamineDetection({.images = 2, .classes = 2, .anchors = 29, .threshold = 0.6, .clip = false});
  ExamineDetection({.anchors = 31, .variances = {0.5, 0.25, 1, 0.125}});
  ExamineDetection({.images = 2, .anchors = 33, .overlap = 1});
  ExamineDetection({.images = 2, .classes = 1, .anchors = 4});  // the background alone
  ExamineDetection({.anchors = 6, .threshold = 2});             // no anchor takes part
  ExamineDetection({.anchors = 1});
  ExamineDetection({.images = 0, .anchors = 4});
}

TEST_CASE("MultiBoxDetection: the best rows alone") {
  ExamineDetection({.images = 2, .anchors = 43, .threshold = 0.4, .most = 7});
  ExamineDetection(
      {.images = 3, .classes = 4, .anchors = 21, .overlap = 0.3, .most = 1, .force = true});
  ExamineDetection(
      {.images = 2, .anchors = 20, .threshold = 0.8, .most = 19});  // more than take part
  ExamineDetection({.anchors = 9, .most = 9});
  ExamineDetection({.anchors = 9, .most = 0});
}

TEST_CASE("MultiBoxDetection: without suppression all are in the order of the anchors") {
  ExamineDetection({.images = 2, .anchors = 30, .threshold = 0.5, .overlap = 0});
  ExamineDetection({.images = 1, .anchors = 30, .threshold = 0.5, .overlap = -1, .most = 3});
  ExamineDetection({.images = 2, .anchors = 30, .threshold = 0.5, .overlap = 1.5, .most = 3});
}

TEST_CASE("MultiBoxDetection: an overlap of the threshold is too much, one of nothing is not") {
  OperatorCase c;
  c.op = c.name = "_contrib_MultiBoxDetection";
  c.shapes = {{1, 2, 4}, {1, 16}, {1, 4, 4}};
  // The second box overlaps the first one by exactly a half; the last two have no area.
  c.inputs = {Cycle({0, 0, 0, 0, 0.875, 0.75, 0.5, 0.25}), Constant(0),
              Cycle({0, 0, 1, 1, 0, 0, 1, 0.5, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25})};
  c.forward = [](const Arrays&, const Arrays&) {
    return Arrays{{0, 0.875, 0,    0,    1,    1,    -1, 0.75, 0,    0,    1,    0.5,
                   0, 0.5,   0.25, 0.25, 0.25, 0.25, 0,  0.25, 0.25, 0.25, 0.25, 0.25}};
  };
  c.backward = false;
  c.types = kAllFloatingTypes;
  RunCase(c);
}

TEST_CASE("MultiBoxDetection: parameters and shapes that it does not take") {
  const auto message = [](const Kwargs& kwargs, const TShape& scores, const TShape& offsets,
                          const TShape& anchor) {
    return MessageOf([&] {
      const auto op = TestRegistry().Create("MultiBoxDetection", kwargs);
      std::vector<TShape> in = {scores, offsets, anchor}, out(1), aux;
      if (op->InferShape(&in, &out, &aux)) CHECK(out[0] == TShape{in[0][0], in[0][2], 6});
    });
  };
  CHECK(message({}, {2, 3, 5}, {2, 20}, {1, 5, 4}) == "");
  CHECK(message({}, {2, 3, TShape::kUnknown}, TShape(), {1, 5, 4}) == "");
  CHECK(message({}, {2, 3, 5}, {2, 24}, {1, 5, 4}) ==
        "_contrib_MultiBoxDetection: loc_pred has shape [2, 24], but [2, 20] was expected");
  CHECK(Says(message({}, {2, 3, 6}, {2, 20}, {1, 5, 4}), "cls_prob has shape [2, 3, 6]"));
  CHECK(Says(message({}, {2, 3, 5}, {2, 20}, {2, 5, 4}), "anchor has shape [2, 5, 4]"));
  CHECK(Says(message({}, {2, 3, 5}, {2, 20}, {1, 5, 3}), "anchor has shape [1, 5, 3]"));
  CHECK(Says(message({}, {2, 3, 5}, {3, 20}, {1, 5, 4}), "has shape"));
  CHECK(Says(message({}, {2, 3, 0}, {2, 0}, {1, 0, 4}), "there is no anchor"));
  CHECK(Says(message({}, {2, 0, 5}, {2, 20}, {1, 5, 4}), "there is no class"));
  const auto refused = [&](const char* name, const char* value) {
    return message({{name, value}}, {2, 3, 5}, {2, 20}, {1, 5, 4});
  };
  CHECK(refused("variances", "(0.1, 0.1)") ==
        "_contrib_MultiBoxDetection: variances = (0.1, 0.1): expected four numbers: of x, y, width "
        "and height");
  CHECK(Says(refused("variances", "(0.1, 0.1, 0, 0.2)"), "_contrib_MultiBoxDetection: variances"));
  CHECK(Says(refused("background_id", "1"), "_contrib_MultiBoxDetection: background_id = '1'"));
  CHECK(Says(refused("background_id", "-1"), "_contrib_MultiBoxDetection: background_id = '-1'"));
  const auto op = TestRegistry().Create("MultiBoxDetection", {});
  CHECK(op->NeedsHeadGradient());
  CHECK(!op->HasGradient(0));
}

}  // namespace
}  // namespace mxtrain::test
