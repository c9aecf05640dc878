// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/metric/box_scores.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/base/philox.h"

namespace mxtrain {
namespace {

using Truth = std::vector<TrueBox>;
using Found = std::vector<FoundBox>;

// Squares with their upper left corner on the diagonal.
TrueBox Object(int label, double at, double size) {
  return {label, at, at, at + size, at + size};
}
FoundBox Detection(int label, float score, double at, double size) {
  return {label, score, at, at, at + size, at + size};
}
TrueBox Crowd(TrueBox box) {
  box.crowd = true;
  return box;
}
TrueBox Difficult(TrueBox box) {
  box.difficult = true;
  return box;
}

std::array<double, 12> Numbers(const BoxScores::Coco& s) {
  return {s.ap,  s.ap50, s.ap75,  s.ap_small, s.ap_medium, s.ap_large,
          s.ar1, s.ar10, s.ar100, s.ar_small, s.ar_medium, s.ar_large};
}

TEST_CASE("perfect detections score 1, sizes without objects are undefined") {
  BoxScores scores(2);
  scores.Add(Truth{Object(0, 0, 20), Object(1, 50, 200)},
             Found{Detection(0, 0.5f, 0, 20), Detection(1, 0.6f, 50, 200)});
  scores.Add(Truth{Object(0, 5, 10)}, Found{Detection(0, 0.2f, 5, 10)});
  const BoxScores::Coco s = scores.CocoStats();
  for (const double one : {s.ap, s.ap50, s.ap75, s.ap_small, s.ap_large, s.ar1, s.ar10, s.ar100,
                           s.ar_small, s.ar_large})
    CHECK(one == doctest::Approx(1).epsilon(1e-15));
  CHECK(std::isnan(s.ap_medium));
  CHECK(std::isnan(s.ar_medium));
  CHECK(scores.VocAp(VocRule::kElevenPoints, 0.5) == std::vector<double>{1, 1});
  CHECK(scores.VocAp(VocRule::kAllPoints, 0.5) == std::vector<double>{1, 1});
}

TEST_CASE("a second detection of an object is an error") {
  BoxScores scores(1);
  scores.Add(Truth{Object(0, 0, 10), Object(0, 50, 10)},
             Found{Detection(0, 0.7f, 50, 10), Detection(0, 0.9f, 0, 10),
                   Detection(0, 0.8f, 0, 10)});  // precision 1, 1/2, 2/3 at recall 1/2, 1/2, 1
  CHECK(scores.ClassApAt(0.5)[0] == doctest::Approx((51 + 50 * 2. / 3) / 101));
  CHECK(scores.VocAp(VocRule::kElevenPoints, 0.5)[0] == doctest::Approx((6 + 5 * 2. / 3) / 11));
  CHECK(scores.VocAp(VocRule::kAllPoints, 0.5)[0] == doctest::Approx((1 + 2. / 3) / 2));
  const std::vector<CurvePoint> curve = scores.Curve(0, 0.5);
  REQUIRE(curve.size() == 3);
  CHECK(curve[1].score == 0.8f);
  CHECK(curve[1].precision == 0.5);
  CHECK(curve[1].recall == 0.5);
  CHECK(curve[2].score == 0.7f);
  CHECK(curve[2].precision == 2. / 3);
  CHECK(curve[2].recall == 1);
}

TEST_CASE("of two equal objects COCO takes the free one, Pascal VOC the first") {
  BoxScores scores(1);
  scores.Add(Truth{Object(0, 0, 10), Object(0, 0, 10)},
             Found{Detection(0, 0.9f, 0, 10), Detection(0, 0.8f, 0, 10)});
  CHECK(scores.ClassAp()[0] == doctest::Approx(1));
  CHECK(scores.VocAp(VocRule::kAllPoints, 0.5)[0] == 0.5);
  BoxScores mixed(2);
  mixed.Add(Truth{Difficult(Object(0, 0, 10)), Object(0, 0, 10),  //
                  Object(1, 0, 10), Difficult(Object(1, 0, 10))},
            Found{Detection(0, 0.9f, 0, 10), Detection(1, 0.9f, 0, 10)});
  CHECK(mixed.VocAp(VocRule::kAllPoints, 0.5) == std::vector<double>{0, 1});
}

TEST_CASE("detections inside a crowd do not count") {
  BoxScores scores(2);
  const Found found = {Detection(0, 0.9f, 110, 10), Detection(0, 0.8f, 130, 10),
                       Detection(0, 0.7f, 0, 10)};
  scores.Add(Truth{Object(0, 0, 10), Crowd(Object(0, 100, 100)), Crowd(Object(1, 0, 9))}, found);
  CHECK(scores.ClassAp()[0] == doctest::Approx(1));
  CHECK(std::isnan(scores.ClassAp()[1]));
  CHECK(scores.Curve(0, 0.5).size() == 1);
  CHECK(scores.CocoStats().ar1 == 0);  // the best one of the image is inside the crowd
  CHECK(scores.CocoStats().ar10 == 1);
  CHECK(scores.VocAp(VocRule::kAllPoints, 0.5)[0] == doctest::Approx(1. / 2 / 3));
}

TEST_CASE("an object is preferred to a crowd of larger overlap") {
  BoxScores scores(1);
  scores.Add(Truth{Crowd(Object(0, 0, 100)), Object(0, 1, 10)}, Found{Detection(0, 0.9f, 0, 10)});
  CHECK(scores.ClassApAt(0.5)[0] == doctest::Approx(1));
}

TEST_CASE("difficult objects neither count nor hurt") {
  BoxScores scores(2);
  scores.Add(Truth{Object(0, 0, 10), Difficult(Object(0, 50, 10)), Difficult(Object(1, 0, 10))},
             Found{Detection(0, 0.9f, 50, 10), Detection(0, 0.8f, 50, 10),
                   Detection(0, 0.7f, 0, 10), Detection(0, 0.6f, 80, 10)});
  const std::vector<double> voc = scores.VocAp(VocRule::kAllPoints, 0.5);
  CHECK(voc[0] == 1);
  CHECK(std::isnan(voc[1]));
  // By COCO's matching the second detection of a difficult object is one of nothing.
  CHECK(scores.ClassApAt(0.5)[0] == doctest::Approx(0.5));
  CHECK(std::isnan(scores.ClassApAt(0.5)[1]));
}

TEST_CASE("classes without objects are undefined, without detections 0") {
  BoxScores scores(3);
  for (const double number : Numbers(scores.CocoStats())) CHECK(std::isnan(number));
  scores.Add(Truth{Object(0, 0, 10)}, Found{Detection(1, 0.9f, 0, 10)});
  scores.Add(Truth{}, Found{});
  for (const auto& values :
       {scores.ClassAp(), scores.ClassApAt(0.5), scores.VocAp(VocRule::kElevenPoints, 0.5),
        scores.VocAp(VocRule::kAllPoints, 0.5)}) {
    CHECK(values[0] == 0);
    CHECK(std::isnan(values[1]));
    CHECK(std::isnan(values[2]));
  }
  CHECK(scores.CocoStats().ap == 0);
  CHECK(scores.CocoStats().ar100 == 0);
  CHECK(scores.Curve(0, 0.5).empty());
  CHECK(scores.Curve(1, 0.5).empty());
}

TEST_CASE("equal scores rank in the order of adding") {
  const Found hit = {Detection(0, 0.5f, 0, 10)}, miss = {Detection(0, 0.5f, 50, 10)};
  const Truth object = {Object(0, 0, 10)};
  BoxScores in_image(2), over_images(1);
  in_image.Add(Truth{Object(0, 0, 10), Object(1, 0, 10)},
               Found{hit[0], miss[0], Detection(1, 0.5f, 50, 10), Detection(1, 0.5f, 0, 10)});
  over_images.Add(Truth{}, miss);
  over_images.Add(object, hit);
  CHECK(in_image.ClassApAt(0.5)[0] == doctest::Approx(1));
  CHECK(in_image.ClassApAt(0.5)[1] == doctest::Approx(0.5));
  CHECK(in_image.VocAp(VocRule::kAllPoints, 0.5) == std::vector<double>{1, 0.5});
  CHECK(over_images.ClassApAt(0.5)[0] == doctest::Approx(0.5));
  CHECK(over_images.VocAp(VocRule::kAllPoints, 0.5)[0] == 0.5);
}

TEST_CASE("a match needs at least the IoU") {
  BoxScores scores(1);
  scores.Add(Truth{{0, 0, 0, 10, 10}}, Found{{0, 0.9f, 0, 0, 10, 5}});  // IoU 0.5
  const BoxScores::Coco s = scores.CocoStats();
  CHECK(s.ap50 == doctest::Approx(1));
  CHECK(s.ap75 == 0);
  CHECK(s.ap == doctest::Approx(0.1));
  CHECK(s.ar100 == doctest::Approx(0.1));
  CHECK(scores.VocAp(VocRule::kAllPoints, 0.5)[0] == 1);
  CHECK(scores.VocAp(VocRule::kAllPoints, 0.51)[0] == 0);
}

TEST_CASE("the size of an object is the area of its segmentation") {
  BoxScores scores(1);
  TrueBox object = Object(0, 0, 100);
  object.area = 500;
  // The first detection is too large to be one of a small object.
  scores.Add(Truth{object}, Found{Detection(0, 0.9f, 200, 100), Detection(0, 0.8f, 0, 100)});
  const BoxScores::Coco s = scores.CocoStats();
  CHECK(s.ap50 == doctest::Approx(0.5));
  CHECK(s.ap_small == doctest::Approx(1));
  CHECK(std::isnan(s.ap_large));
}

TEST_CASE("COCO looks at 100 detections of a class in an image") {
  for (const int errors : {0, 1, 9, 10, 99, 100}) {
    CAPTURE(errors);
    BoxScores scores(1);
    Found found(static_cast<size_t>(errors), Detection(0, 0.9f, 50, 10));
    found.push_back(Detection(0, 0.5f, 0, 10));
    scores.Add(Truth{Object(0, 0, 10)}, found);
    const BoxScores::Coco s = scores.CocoStats();
    CHECK(s.ar1 == (errors < 1 ? 1 : 0));
    CHECK(s.ar10 == (errors < 10 ? 1 : 0));
    CHECK(s.ar100 == (errors < 100 ? 1 : 0));
    CHECK(scores.ClassAp()[0] == doctest::Approx(errors < 100 ? 1. / (errors + 1) : 0));
    CHECK(scores.VocAp(VocRule::kAllPoints, 0.5)[0] == doctest::Approx(1. / (errors + 1)));
  }
}

TEST_CASE("numbers that are not finite do no harm") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  BoxScores scores(1);
  scores.Add(Truth{Object(0, 0, 10)},
             Found{Detection(0, nan, 0, 10), Detection(0, 0.9f, nan, 10),
                   Detection(0, 0.1f, 0, std::numeric_limits<double>::infinity())});
  CHECK(scores.ClassApAt(0.5)[0] == doctest::Approx(1. / 2));  // the infinite one is out of range
  CHECK(scores.VocAp(VocRule::kAllPoints, 0.5)[0] == doctest::Approx(1. / 3));
}

TEST_CASE("labels out of range are refused") {
  BoxScores scores(2);
  CHECK_THROWS_WITH_AS(scores.Add(Truth{Object(0, 0, 9), Object(2, 0, 9)}, Found{}),
                       "box scores: label 2 of a labelled object is out of range for 2 classes",
                       Error);
  CHECK_THROWS_WITH_AS(scores.Add(Truth{Object(0, 0, 9)}, Found{Detection(-1, 0.5f, 0, 9)}),
                       "box scores: label -1 of a detection is out of range for 2 classes", Error);
  CHECK(std::isnan(scores.CocoStats().ap));  // nothing was added
}

// Random images of few distinct boxes and scores, so that ties are frequent.
struct Image {
  Truth truth;
  Found found;
};
class Random {
 public:
  explicit Random(uint64_t seed) : seed_(seed) {}
  int Below(int end) {
    return static_cast<int>(PhiloxAt(seed_, 0, 0, next_++) % static_cast<uint32_t>(end));
  }
  std::vector<Image> Images(int count, int classes, int most_found) {
    std::vector<Image> images(static_cast<size_t>(count));
    for (Image& image : images) {
      for (int i = Below(7); i > 0; --i) {
        const int x = Below(60), y = Below(60), size = 6 << Below(5);
        TrueBox box = {Below(classes), static_cast<double>(x), static_cast<double>(y),
                       static_cast<double>(x + size), static_cast<double>(y + size + Below(20))};
        if (Below(3) == 0) box.area = size * size / 2;
        box.crowd = Below(8) == 0;
        box.difficult = Below(4) == 0;
        image.truth.push_back(box);
      }
      for (int i = Below(most_found); i > 0 && !image.truth.empty(); --i) {
        const TrueBox& near =
            image.truth[static_cast<size_t>(Below(static_cast<int>(image.truth.size())))];
        const int label = Below(6) == 0 ? Below(classes) : near.label;
        const double dx = Below(5) - 2, dy = Below(5) - 2, longer = Below(9) - 4;
        image.found.push_back({label, static_cast<float>(Below(12)) / 16, near.left + dx,
                               near.top + dy, near.right + dx, near.bottom + dy + longer});
      }
    }
    return images;
  }

 private:
  const uint64_t seed_;
  uint64_t next_ = 0;
};

// The rules of Pascal VOC, written out.
class NaiveVoc {
 public:
  NaiveVoc(const std::vector<Image>& images, int label, double iou) {
    struct Ranked {
      size_t image;
      FoundBox box;
    };
    std::vector<Ranked> all;
    std::vector<std::vector<bool>> used;
    for (size_t i = 0; i < images.size(); ++i) {
      used.emplace_back(images[i].truth.size());
      for (const TrueBox& t : images[i].truth) objects_ += t.label == label && !t.difficult;
      for (const FoundBox& f : images[i].found)
        if (f.label == label) all.push_back({i, f});
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const Ranked& a, const Ranked& b) { return a.box.score > b.box.score; });
    int hits = 0, errors = 0;
    for (const auto& [image, f] : all) {
      int best = -1;
      const Truth& truth = images[image].truth;
      for (int j = 0; j < static_cast<int>(truth.size()); ++j) {
        const TrueBox& t = truth[static_cast<size_t>(j)];
        if (t.label != label || Overlap(f, t) == 0) continue;
        if (best < 0 || Overlap(f, t) > Overlap(f, truth[static_cast<size_t>(best)])) best = j;
      }
      const auto b = static_cast<size_t>(best);
      if (best >= 0 && Overlap(f, truth[b]) >= iou) {
        if (truth[b].difficult) continue;
        (used[image][b] ? errors : hits) += 1;
        used[image][b] = true;
      } else {
        ++errors;
      }
      hits_.push_back(hits);
      precision_.push_back(static_cast<double>(hits) / (hits + errors));
    }
  }
  int objects() const { return objects_; }
  double ElevenPoints() const {
    double sum = 0;
    for (int level = 0; level <= 10; ++level) sum += Best(level * objects_, 10);
    return sum / 11;
  }
  double AllPoints() const {
    double sum = 0;
    for (int hit = 1; hit <= objects_; ++hit) sum += Best(hit, 1);
    return sum / objects_;
  }

 private:
  static double Overlap(const FoundBox& f, const TrueBox& t) {
    const double w = std::min(f.right, t.right) - std::max(f.left, t.left);
    const double h = std::min(f.bottom, t.bottom) - std::max(f.top, t.top);
    if (w <= 0 || h <= 0) return 0;
    const double a = (f.right - f.left) * (f.bottom - f.top);
    const double b = (t.right - t.left) * (t.bottom - t.top);
    return w * h / (a + b - w * h);
  }
  // The best precision where there are at least hits / divisor hits.
  double Best(int hits, int divisor) const {
    double best = 0;
    for (size_t i = 0; i < hits_.size(); ++i)
      if (hits_[i] * divisor >= hits) best = std::max(best, precision_[i]);
    return best;
  }

  int objects_ = 0;
  std::vector<int> hits_;
  std::vector<double> precision_;
};

TEST_CASE("Pascal VOC against a naive implementation") {
  constexpr int kClasses = 3;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    const std::vector<Image> images = Random(seed).Images(6, kClasses, 16);
    BoxScores scores(kClasses);
    for (const Image& image : images) scores.Add(image.truth, image.found);
    for (const double iou : {0.3, 0.5, 0.75}) {
      const auto eleven = scores.VocAp(VocRule::kElevenPoints, iou);
      const auto all = scores.VocAp(VocRule::kAllPoints, iou);
      for (int label = 0; label < kClasses; ++label) {
        const NaiveVoc naive(images, label, iou);
        const auto k = static_cast<size_t>(label);
        CHECK(std::isnan(all[k]) == (naive.objects() == 0));
        if (naive.objects() == 0) continue;
        CHECK(eleven[k] == doctest::Approx(naive.ElevenPoints()).epsilon(1e-12));
        CHECK(all[k] == doctest::Approx(naive.AllPoints()).epsilon(1e-12));
      }
    }
  }
}

// The numbers are those of pycocotools 2.0.11, COCOeval(..., "bbox").
TEST_CASE("COCO's numbers are those of pycocotools") {
  struct Case {
    uint64_t seed;
    int images, classes, most_found;
    std::array<double, 12> numbers;
  };
  const std::array cases = {
      Case{1,
           8,
           2,
           16,
           {0.2610462335032423, 0.39783389270101094, 0.29467792933139464, 0.18573491277699197, 0.9,
            0.30188118811881187, 0.22615384615384615, 0.3719230769230769, 0.3719230769230769, 0.31,
            0.9, 0.31666666666666665}},
      Case{2,
           3,
           1,
           400,
           {0.3875527998269723, 0.6277377737773777, 0.41419141914191415, 0.29263306456625104,
            0.858943894389439, 0.7121897904076122, 0.1125, 0.7875, 0.9625, 0.925, 1.0, 1.0}},
      Case{3,
           40,
           4,
           25,
           {0.2507398743854017, 0.3761360793499707, 0.2619154688096054, 0.18308823264747312,
            0.5091406511974726, 0.32839675313685207, 0.3094033251231527, 0.5277083333333333,
            0.5277083333333333, 0.4158653846153847, 0.6670138888888888, 0.79375}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.seed);
    BoxScores scores(c.classes);
    for (Image& image : Random(c.seed).Images(c.images, c.classes, c.most_found)) {
      for (TrueBox& box : image.truth) box.difficult = false;  // as COCO's files are
      scores.Add(image.truth, image.found);
    }
    const std::array<double, 12> given = Numbers(scores.CocoStats());
    for (size_t i = 0; i < given.size(); ++i) {
      CAPTURE(i);
      CHECK(given[i] == doctest::Approx(c.numbers[i]).epsilon(1e-12));
    }
  }
}

}  // namespace
}  // namespace mxtrain
