// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/metric/box_scores.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "mxtrain/base/error.h"

namespace mxtrain {
namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

struct AreaRange {
  double least, most;
  bool Contains(double area) const { return !(area < least || area > most); }
};
constexpr AreaRange kAllAreas = {0, 1e10};
constexpr std::array<AreaRange, 4> kAreaRanges = {
    {kAllAreas, {0, 32 * 32}, {32 * 32, 96 * 96}, {96 * 96, 1e10}}};

constexpr std::array<size_t, 3> kMostFound = {1, 10, 100};  // per image and class

// 0.5 .. 0.95, rounded as by NumPy's linspace: some differ from the nearest number to 0.05 k.
constexpr std::array<double, 10> kIous = [] {
  std::array<double, 10> ious{};
  for (int i = 0; i < 10; ++i) ious[static_cast<size_t>(i)] = 0.5 + i * ((0.95 - 0.5) / 9);
  ious.back() = 0.95;
  return ious;
}();

class Mean {
 public:
  void Add(double x) {
    sum_ += x;
    ++count_;
  }
  double value() const { return count_ > 0 ? sum_ / static_cast<double>(count_) : kUndefined; }

 private:
  double sum_ = 0;
  int64_t count_ = 0;
};

template <typename Box>
double AreaOf(const Box& box) {
  return (box.right - box.left) * (box.bottom - box.top);
}

// 0 for boxes that do not overlap or have a coordinate that is NaN.
double Intersection(const FoundBox& a, const TrueBox& b) {
  const double width = std::min(a.right, b.right) - std::max(a.left, b.left);
  const double height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  return width > 0 && height > 0 ? width * height : 0;
}

// COCO's: the part of the detection inside a crowd.
double CocoIou(const FoundBox& found, const TrueBox& truth) {
  if (!truth.crowd) return IntersectionOverUnion(found, truth);
  const double common = Intersection(found, truth);
  return common > 0 ? common / AreaOf(found) : 0;
}

// The detections of a class that count, in falling order of score.
struct Ranking {
  struct Detection {
    float score;
    bool hit;
  };
  std::vector<Detection> detections;
  int64_t positives = 0;  // objects to be found
};

// `epsilon` is added to the denominator of the precision.
std::vector<CurvePoint> CurveOf(const Ranking& ranking, double epsilon = 0) {
  if (ranking.positives == 0) return {};
  std::vector<CurvePoint> curve;
  curve.reserve(ranking.detections.size());
  const auto positives = static_cast<double>(ranking.positives);
  double hits = 0, count = 0;
  for (const auto& [score, hit] : ranking.detections) {
    hits += hit ? 1 : 0;
    count += 1;
    curve.push_back({score, hits / (count + epsilon), hits / positives});
  }
  return curve;
}

// Each precision becomes the best one at this recall or above.
void MakeMonotone(std::vector<CurvePoint>* curve) {
  double best = 0;
  for (auto point = curve->rbegin(); point != curve->rend(); ++point)
    point->precision = best = std::max(best, point->precision);
}

// The precision of a monotone curve at the first point of at least this recall; 0 beyond the curve.
double PrecisionAt(const std::vector<CurvePoint>& curve, double recall) {
  const auto point = std::ranges::lower_bound(curve, recall, {}, &CurvePoint::recall);
  return point == curve.end() ? 0 : point->precision;
}

double CocoAp(const Ranking& ranking) {
  if (ranking.positives == 0) return kUndefined;
  auto curve = CurveOf(ranking, std::numeric_limits<double>::epsilon());
  MakeMonotone(&curve);
  double sum = 0;
  for (int i = 0; i <= 100; ++i) sum += PrecisionAt(curve, i * 0.01);  // rounded as NumPy does it
  return sum / 101;
}

double VocApOf(const Ranking& ranking, VocRule rule) {
  if (ranking.positives == 0) return kUndefined;
  auto curve = CurveOf(ranking);
  MakeMonotone(&curve);
  double sum = 0;
  if (rule == VocRule::kElevenPoints) {
    for (int i = 0; i <= 10; ++i) sum += PrecisionAt(curve, i / 10.0);
    return sum / 11;
  }
  for (size_t i = 0; i < curve.size(); ++i)
    if (ranking.detections[i].hit) sum += curve[i].precision;
  return sum / static_cast<double>(ranking.positives);
}

enum class Outcome : uint8_t { kMiss, kHit, kIgnored };

// The images of a class, prepared for COCO's matching under many thresholds.
class CocoMatcher {
 public:
  struct Result {
    Ranking ranking;
    std::array<int64_t, kMostFound.size()> hits{};  // of the first kMostFound of each image
    double Recall(size_t i) const {
      return static_cast<double>(hits[i]) / static_cast<double>(ranking.positives);
    }
  };

  explicit CocoMatcher(const std::vector<ClassBoxes>& boxes) {
    for (const ClassBoxes& image : boxes) {
      const size_t count = std::min(image.found.size(), kMostFound.back());
      images_.push_back({image.truth, std::span(image.found).first(count), overlaps_.size()});
      for (const FoundBox& found : images_.back().found) {
        scores_.push_back(found.score);
        for (const TrueBox& truth : image.truth) overlaps_.push_back(CocoIou(found, truth));
      }
    }
    ranks_.resize(scores_.size());
    std::iota(ranks_.begin(), ranks_.end(), size_t{0});
    std::ranges::stable_sort(ranks_, std::greater<>(), [this](size_t i) { return scores_[i]; });
  }

  // Objects outside `range` do not count, nor do detections of them, nor detections of nothing that
  // are outside it themselves.
  Result Match(const AreaRange& range, double iou) const {
    Result result;
    std::vector<Outcome> outcomes;
    outcomes.reserve(scores_.size());
    for (const Image& image : images_) MatchImage(image, range, iou, &outcomes, &result);
    for (const size_t i : ranks_) {
      if (outcomes[i] == Outcome::kIgnored) continue;
      result.ranking.detections.push_back({scores_[i], outcomes[i] == Outcome::kHit});
    }
    return result;
  }

 private:
  struct Image {
    std::span<const TrueBox> truth;
    std::span<const FoundBox> found;
    size_t overlaps;  // where its own begin: [found, truth]
  };
  struct Object {
    bool ignored, crowd, taken;
  };

  void MatchImage(const Image& image, const AreaRange& range, double iou,
                  std::vector<Outcome>* outcomes, Result* result) const {
    std::vector<Object> objects;
    objects.reserve(image.truth.size());
    for (const TrueBox& truth : image.truth) {
      const bool ignored = truth.crowd || truth.difficult || !range.Contains(truth.area);
      objects.push_back({ignored, truth.crowd, false});
      if (!objects.back().ignored) ++result->ranking.positives;
    }
    const double* overlaps = overlaps_.data() + image.overlaps;
    for (size_t i = 0; i < image.found.size(); ++i, overlaps += objects.size()) {
      const Outcome outcome = Take(overlaps, iou, range.Contains(AreaOf(image.found[i])), objects);
      outcomes->push_back(outcome);
      if (outcome != Outcome::kHit) continue;
      for (size_t k = 0; k < kMostFound.size(); ++k)
        if (i < kMostFound[k]) ++result->hits[k];
    }
  }

  // A detection takes the free object of the largest overlap, of equal ones the last; an ignored
  // one only if there is no other. A crowd is always free.
  static Outcome Take(const double* overlaps, double iou, bool in_range,
                      std::span<Object> objects) {
    for (const bool ignored : {false, true}) {
      double best = std::min(iou, 1 - 1e-10);
      Object* choice = nullptr;
      for (size_t i = 0; i < objects.size(); ++i) {
        Object& object = objects[i];
        if (object.ignored != ignored || (object.taken && !object.crowd)) continue;
        if (!(overlaps[i] >= best)) continue;
        best = overlaps[i];
        choice = &object;
      }
      if (!choice) continue;
      choice->taken = true;
      return ignored ? Outcome::kIgnored : Outcome::kHit;
    }
    return in_range ? Outcome::kMiss : Outcome::kIgnored;
  }

  std::vector<Image> images_;
  std::vector<double> overlaps_;
  std::vector<float> scores_;  // of all detections, image by image
  std::vector<size_t> ranks_;  // the detections in falling order of score
};

// COCO's means for one range of areas.
struct RangeMeans {
  Mean ap, ap50, ap75;
  std::array<Mean, kMostFound.size()> recall;
};

// A detection belongs to the object of its image with the largest overlap, of equal ones the first.
// Only the first detection of an object is a hit.
void RankVocImage(const ClassBoxes& image, double iou, Ranking* ranking) {
  for (const TrueBox& truth : image.truth) ranking->positives += truth.difficult ? 0 : 1;
  std::vector<bool> taken(image.truth.size());
  for (const FoundBox& found : image.found) {
    double best = 0;
    size_t choice = 0;
    for (size_t i = 0; i < image.truth.size(); ++i) {
      const double overlap = IntersectionOverUnion(found, image.truth[i]);
      if (!(overlap > best)) continue;
      best = overlap;
      choice = i;
    }
    const bool match = best > 0 && best >= iou;
    if (match && image.truth[choice].difficult) continue;
    ranking->detections.push_back({found.score, match && !taken[choice]});
    if (match) taken[choice] = true;
  }
}

Ranking VocRanking(const std::vector<ClassBoxes>& images, double iou) {
  Ranking ranking;
  for (const ClassBoxes& image : images) RankVocImage(image, iou, &ranking);
  std::ranges::stable_sort(ranking.detections, std::greater<>(), &Ranking::Detection::score);
  return ranking;
}

void CheckLabel(int label, size_t classes, const char* of) {
  if (label >= 0 && static_cast<size_t>(label) < classes) return;
  Throw(ErrorKind::kData, "box scores: label {} of a {} is out of range for {}", label, of,
        classes == 1 ? "1 class" : format("{} classes", classes));
}

}  // namespace

double IntersectionOverUnion(const FoundBox& found, const TrueBox& truth) {
  const double common = Intersection(found, truth);
  return common > 0 ? common / (AreaOf(found) + AreaOf(truth) - common) : 0;
}

BoxScores::BoxScores(int num_classes) {
  MXTRAIN_ASSERT(num_classes >= 0);
  classes_.resize(static_cast<size_t>(num_classes));
}

void BoxScores::Add(std::span<const TrueBox> truth, std::span<const FoundBox> found) {
  std::map<int, ClassBoxes> image;
  for (const TrueBox& box : truth) {
    CheckLabel(box.label, classes_.size(), "labelled object");
    TrueBox& added = image[box.label].truth.emplace_back(box);
    if (added.area < 0) added.area = AreaOf(box);
  }
  for (const FoundBox& box : found) {
    CheckLabel(box.label, classes_.size(), "detection");
    FoundBox& added = image[box.label].found.emplace_back(box);
    if (std::isnan(added.score)) added.score = -std::numeric_limits<float>::infinity();
  }
  for (auto& [label, boxes] : image) {
    std::ranges::stable_sort(boxes.found, std::greater<>(), &FoundBox::score);
    classes_[static_cast<size_t>(label)].push_back(std::move(boxes));
  }
}

BoxScores::Coco BoxScores::CocoStats() const {
  std::array<RangeMeans, kAreaRanges.size()> means;
  for (const std::vector<ClassBoxes>& images : classes_) {
    const CocoMatcher matcher(images);
    for (size_t area = 0; area < kAreaRanges.size(); ++area) {
      RangeMeans& mean = means[area];
      for (const double iou : kIous) {
        const CocoMatcher::Result result = matcher.Match(kAreaRanges[area], iou);
        if (result.ranking.positives == 0) break;
        const double ap = CocoAp(result.ranking);
        mean.ap.Add(ap);
        if (iou == 0.5) mean.ap50.Add(ap);
        if (iou == 0.75) mean.ap75.Add(ap);
        for (size_t k = 0; k < kMostFound.size(); ++k) mean.recall[k].Add(result.Recall(k));
      }
    }
  }
  const auto& [all, small, medium, large] = means;
  return {all.ap.value(),          all.ap50.value(),         all.ap75.value(),
          small.ap.value(),        medium.ap.value(),        large.ap.value(),
          all.recall[0].value(),   all.recall[1].value(),    all.recall[2].value(),
          small.recall[2].value(), medium.recall[2].value(), large.recall[2].value()};
}

std::vector<double> BoxScores::ClassAp() const {
  std::vector<double> values;
  for (const std::vector<ClassBoxes>& images : classes_) {
    const CocoMatcher matcher(images);
    Mean mean;
    for (const double iou : kIous) mean.Add(CocoAp(matcher.Match(kAllAreas, iou).ranking));
    values.push_back(mean.value());
  }
  return values;
}

std::vector<double> BoxScores::ClassApAt(double iou) const {
  std::vector<double> values;
  for (const std::vector<ClassBoxes>& images : classes_)
    values.push_back(CocoAp(CocoMatcher(images).Match(kAllAreas, iou).ranking));
  return values;
}

std::vector<CurvePoint> BoxScores::Curve(int label, double iou) const {
  MXTRAIN_ASSERT(label >= 0 && static_cast<size_t>(label) < classes_.size());
  return CurveOf(CocoMatcher(classes_[static_cast<size_t>(label)]).Match(kAllAreas, iou).ranking);
}

std::vector<double> BoxScores::VocAp(VocRule rule, double iou) const {
  std::vector<double> values;
  for (const std::vector<ClassBoxes>& images : classes_)
    values.push_back(VocApOf(VocRanking(images, iou), rule));
  return values;
}

}  // namespace mxtrain
