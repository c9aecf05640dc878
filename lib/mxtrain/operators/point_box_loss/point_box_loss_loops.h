// SPDX-License-Identifier: Apache-2.0
#pragma once
// In three steps: each object chooses its candidates (the work of a thread, which looks at the
// points in the object's box only), each image gives its points to objects, and a team sums the
// loss of an image. Backward differentiates the terms of the loss with dual numbers.
#include <memory>

#include "mxtrain/operator/operator.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operator/rows.h"
#include "mxtrain/operators/point_box_loss/point_box_loss.h"

namespace mxtrain::point_box_loss {

template <typename V>
MXTRAIN_HD V Smaller(V a, V b) {
  return b < a ? b : a;
}
template <typename V>
MXTRAIN_HD V Larger(V a, V b) {
  return a < b ? b : a;
}
// GIoU of two boxes with an area, of numbers or dual numbers.
template <typename V>
MXTRAIN_HD V GeneralizedOverlap(const Corners<V>& a, const Corners<V>& b) {
  const V common = IntersectionArea(a, b), together = a.Area() + b.Area() - common;
  const V hull = (Larger(a.right, b.right) - Smaller(a.left, b.left)) *
                 (Larger(a.bottom, b.bottom) - Smaller(a.top, b.top));
  return common / together - (hull - together) / hull;
}

// |y - p|^gamma BCE(y, p) for the logit z of p.
template <typename V>
struct ScoreLoss {
  float gamma;
  MXTRAIN_HD V operator()(V z, V y) const {
    const V entropy = vector_math::Softplus(z) - y * z;
    if (gamma == 0) return entropy;
    const V gap = y - vector_math::Sigmoid(z), size = gap < V(0) ? -gap : gap;
    if (gamma == 2) return size * size * entropy;
    return size > V(0) ? vector_math::Pow(size, V(gamma)) * entropy : V(0);
  }
};

// What is kept from forward to backward.
template <typename C>
struct Targets {
  int32_t* object;  // [images, points]: the object of a point, kBackground or kNothingLearnt
  C* score;         // [images, points]: y of its class
  C* sum;           // [images]: max(sum y, 1)

  static int64_t Bytes(int64_t images, int64_t points) {
    return images * points * static_cast<int64_t>(sizeof(int32_t) + sizeof(C)) +
           images * static_cast<int64_t>(sizeof(C));
  }
  Targets(void* bytes, int64_t images, int64_t points)
      : object(nullptr), score(static_cast<C*>(bytes)), sum(score + images * points) {
    object = reinterpret_cast<int32_t*>(sum + images);
  }
};

// The points that each object wants: t in falling order.
template <typename C>
struct Wishes {
  int candidates;
  C *alignment, *overlap;  // [images, objects, candidates]
  int32_t* point;          // likewise; -1: none

  static int64_t Bytes(int64_t objects, int candidates) {
    return objects * candidates * static_cast<int64_t>(2 * sizeof(C) + sizeof(int32_t));
  }
  Wishes(void* bytes, int64_t objects, int count)
      : candidates(count),
        alignment(static_cast<C*>(bytes)),
        overlap(alignment + objects * count),
        point(reinterpret_cast<int32_t*>(overlap + objects * count)) {}
};

template <typename T>
struct ChooseCandidates {
  using C = ComputeOf<T>;
  PointMaps<T> maps;
  LabelledObjects<T> labels;
  Wishes<C> wishes;
  C score_power, overlap_power;

  MXTRAIN_HD static C Power(C base, C exponent) {
    return exponent == C(0) ? C(1) : base > C(0) ? vector_math::Pow(base, exponent) : C(0);
  }
  // Keeps the best; of equal ones the first.
  MXTRAIN_HD void Offer(int64_t first, C t, C u, int64_t point) const {
    int j = wishes.candidates - 1;
    if (!(wishes.point[first + j] < 0 || t > wishes.alignment[first + j])) return;
    for (; j > 0 && (wishes.point[first + j - 1] < 0 || t > wishes.alignment[first + j - 1]); --j) {
      wishes.alignment[first + j] = wishes.alignment[first + j - 1];
      wishes.overlap[first + j] = wishes.overlap[first + j - 1];
      wishes.point[first + j] = wishes.point[first + j - 1];
    }
    wishes.alignment[first + j] = t;
    wishes.overlap[first + j] = u;
    wishes.point[first + j] = static_cast<int32_t>(point);
  }
  // Cells whose middle is between low and high.
  MXTRAIN_HD static int64_t FirstCell(C low, C stride, int64_t count) {
    const C cell = low / stride - C(0.5);
    return cell <= C(0) ? 0 : cell >= static_cast<C>(count) ? count : Ceil(cell);
  }
  MXTRAIN_HD static int64_t Ceil(C value) {
    const auto floor = static_cast<int64_t>(value);
    return static_cast<C>(floor) < value ? floor + 1 : floor;
  }

  MXTRAIN_HD void operator()(int64_t i) const {
    const int64_t image = i / labels.most, first = i * wishes.candidates;
    for (int j = 0; j < wishes.candidates; ++j) wishes.point[first + j] = -1;
    typename LabelledObjects<T>::Object object;
    if (!labels.Get(image, i % labels.most, &object) || !object.learnt) return;
    for (int l = 0; l < maps.levels; ++l) {
      const auto& level = maps.level[l];
      if (level.plane == 0) continue;
      // At least a stride wide, so that small objects have candidates.
      Corners<C> box = object.box;
      Widen(level.stride, &box.left, &box.right);
      Widen(level.stride, &box.top, &box.bottom);
      const int64_t height = level.plane / level.width;
      const int64_t column0 = FirstCell(box.left, level.stride, level.width),
                    row0 = FirstCell(box.top, level.stride, height);
      for (int64_t row = row0; row < height; ++row) {
        const C y = (static_cast<C>(row) + C(0.5)) * level.stride;
        if (y > box.bottom) break;
        for (int64_t column = column0; column < level.width; ++column) {
          const C x = (static_cast<C>(column) + C(0.5)) * level.stride;
          if (x > box.right) break;
          const typename PointMaps<T>::Place at{l, row * level.width + column, x, y};
          const Corners<C> proposed = maps.Box(image, at);
          const C common = IntersectionArea(proposed, object.box);
          const C u = common / (proposed.Area() + object.box.Area() - common);
          const C p = vector_math::Sigmoid(maps.Score(image, at, object.label));
          Offer(first, Power(p, score_power) * Power(u, overlap_power), u, level.first + at.cell);
        }
      }
    }
  }
  MXTRAIN_HD static void Widen(C stride, C* low, C* high) {
    if (!(*high - *low < stride)) return;
    const C middle = (*low + *high) / C(2);
    *low = middle - stride / C(2);
    *high = middle + stride / C(2);
  }
};

// Gives the points of an image to objects.
template <typename T>
struct AssignPoints {
  using C = ComputeOf<T>;
  PointMaps<T> maps;
  LabelledObjects<T> labels;
  Wishes<C> wishes;
  Targets<C> targets;

  MXTRAIN_HD void operator()(int64_t image) const {
    int32_t* const object = targets.object + image * maps.points;
    C* const score = targets.score + image * maps.points;
    for (int64_t p = 0; p < maps.points; ++p) object[p] = kBackground, score[p] = C(0);
    // Until all are given, `score` is the overlap of a point with the object that has it.
    for (int64_t m = 0; m < labels.most; ++m) {
      const int64_t first = (image * labels.most + m) * wishes.candidates;
      for (int64_t j = first; j < first + wishes.candidates && wishes.point[j] >= 0; ++j) {
        const int32_t p = wishes.point[j];
        if (object[p] != kBackground && !(wishes.overlap[j] > score[p])) continue;
        object[p] = static_cast<int32_t>(m);
        score[p] = wishes.overlap[j];
      }
    }
    C sum = C(0);
    for (int64_t m = 0; m < labels.most; ++m) {
      const int64_t first = (image * labels.most + m) * wishes.candidates;
      C best_t = C(0), best_u = C(0);
      for (int64_t j = first; j < first + wishes.candidates && wishes.point[j] >= 0; ++j) {
        if (object[wishes.point[j]] != m) continue;
        best_t = wishes.alignment[j] > best_t ? wishes.alignment[j] : best_t;
        best_u = wishes.overlap[j] > best_u ? wishes.overlap[j] : best_u;
      }
      for (int64_t j = first; j < first + wishes.candidates && wishes.point[j] >= 0; ++j) {
        const int32_t p = wishes.point[j];
        if (object[p] != m) continue;
        score[p] = best_t > C(0) ? wishes.alignment[j] / best_t * best_u : C(0);
        sum += score[p];
      }
    }
    targets.sum[image] = sum > C(1) ? sum : C(1);
    IgnoreInside(maps, labels, image, object);
  }
};

// The terms of the loss at a point, of numbers or dual numbers.
template <typename T>
struct PointTerms {
  using C = ComputeOf<T>;
  PointMaps<T> maps;
  LabelledObjects<T> labels;
  Targets<C> targets;
  float gamma;
  C box_weight, distribution_weight;

  MXTRAIN_HD C Target(int64_t image, int64_t p, int64_t k) const {
    const int32_t m = targets.object[image * maps.points + p];
    typename LabelledObjects<T>::Object object;
    if (m < 0 || !labels.Get(image, m, &object)) return C(0);
    return object.label == k ? targets.score[image * maps.points + p] : C(0);
  }
  // y (1 - GIoU), differentiated by one of the four sides; -1: by none.
  MXTRAIN_HD Dual<C> BoxTerm(int64_t image, int64_t p, int by) const {
    const int32_t m = targets.object[image * maps.points + p];
    typename LabelledObjects<T>::Object object;
    if (m < 0 || !labels.Get(image, m, &object)) return Dual<C>(C(0));
    const auto at = maps.PlaceOf(p);
    Dual<C> side[4];
    for (int s = 0; s < 4; ++s) side[s] = Dual<C>(maps.Side(image, at, s), C(s == by ? 1 : 0));
    const Corners<Dual<C>> box = maps.BoxOf(at, side[0], side[1], side[2], side[3]),
                           own = {Dual<C>(object.box.left), Dual<C>(object.box.top),
                                  Dual<C>(object.box.right), Dual<C>(object.box.bottom)};
    const Dual<C> y(targets.score[image * maps.points + p]);
    return y * (Dual<C>(1) - GeneralizedOverlap(box, own));
  }
  // The object of a point has a side at so many strides, between two numbers of a distribution.
  struct Between {
    int64_t lower;
    C above;  // the part of the way to the next number
  };
  MXTRAIN_HD Between SideOfObject(const typename PointMaps<T>::Place& at, const Corners<C>& box,
                                  int side) const {
    const C away = side == 0   ? at.x - box.left
                   : side == 1 ? at.y - box.top
                   : side == 2 ? box.right - at.x
                               : box.bottom - at.y;
    const C most = static_cast<C>(maps.bins) - C(1.01);
    C distance = away / maps.level[at.level].stride;
    distance = distance < C(0) ? C(0) : distance > most ? most : distance;
    const auto lower = static_cast<int64_t>(distance);
    return {lower, distance - static_cast<C>(lower)};
  }
  // y times the mean of the distribution focal losses.
  MXTRAIN_HD C DistributionTerm(int64_t image, int64_t p) const {
    const int32_t m = targets.object[image * maps.points + p];
    typename LabelledObjects<T>::Object object;
    if (m < 0 || !labels.Get(image, m, &object)) return C(0);
    const auto at = maps.PlaceOf(p);
    C sum = C(0);
    for (int s = 0; s < 4; ++s) {
      const auto distribution = maps.DistributionOf(image, at, s);
      const Between to = SideOfObject(at, object.box, s);
      sum += (C(1) - to.above) * distribution.MinusLog(maps.RawSide(image, at, s, to.lower)) +
             to.above * distribution.MinusLog(maps.RawSide(image, at, s, to.lower + 1));
    }
    return targets.score[image * maps.points + p] * sum / C(4);
  }
  MXTRAIN_HD bool IsLearnt(int64_t image, int64_t p) const {
    return targets.object[image * maps.points + p] != kNothingLearnt;
  }
};

template <typename T>
struct SumImage {
  using C = ComputeOf<T>;
  PointTerms<T> terms;
  OpReqType req;
  T* out;

  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t image) const {
    double sum = 0;
    for (int64_t p = team.rank(); p < terms.maps.points; p += team.size()) {
      if (!terms.IsLearnt(image, p)) continue;
      const auto at = terms.maps.PlaceOf(p);
      const ScoreLoss<C> loss{terms.gamma};
      C of_point = terms.box_weight * terms.BoxTerm(image, p, -1).value;
      if (terms.maps.form == kDistributions)
        of_point += terms.distribution_weight * terms.DistributionTerm(image, p);
      for (int64_t k = 0; k < terms.maps.classes; ++k)
        of_point += loss(terms.maps.Score(image, at, k), terms.Target(image, p, k));
      sum += static_cast<double>(of_point);
    }
    sum = team.Fold(sum, AddBoth{});
    if (team.rank() == 0)
      Assign(req, out, image, static_cast<C>(sum / static_cast<double>(terms.targets.sum[image])));
  }
};

// The gradients of the maps at point i % points of an image.
template <typename T>
struct DifferentiatePoint {
  using C = ComputeOf<T>;
  PointTerms<T> terms;
  C scale;
  PointMaps<T> grads;
  OpReqType score_req[kMostPointLevels], side_req[kMostPointLevels];

  MXTRAIN_HD void operator()(int64_t i) const {
    const int64_t points = terms.maps.points, image = i / points, p = i % points;
    const auto at = terms.maps.PlaceOf(p);
    const C factor = terms.IsLearnt(image, p) ? scale / terms.targets.sum[image] : C(0);
    if (score_req[at.level] != OpReqType::kNullOp) {
      const ScoreLoss<Dual<C>> loss{terms.gamma};
      for (int64_t k = 0; k < terms.maps.classes; ++k) {
        const Dual<C> z(terms.maps.Score(image, at, k), C(1)), y(terms.Target(image, p, k));
        Assign(score_req[at.level], grads.level[at.level].scores,
               terms.maps.ScoreIndex(image, at, k),
               factor == C(0) ? C(0) : factor * loss(z, y).slope);
      }
    }
    if (side_req[at.level] == OpReqType::kNullOp) return;
    const bool has_object = terms.targets.object[i] >= 0;
    for (int s = 0; s < 4; ++s) {
      const C slope =
          has_object ? factor * terms.box_weight * terms.BoxTerm(image, p, s).slope : C(0);
      if (terms.maps.form == kDistributions) {
        OfDistribution(image, p, s, slope, has_object ? factor : C(0));
      } else {
        Assign(side_req[at.level], grads.level[at.level].sides, terms.maps.SideIndex(image, at, s),
               slope);
      }
    }
  }
  // Of the logits of a side. `slope`: by the mean of its distribution.
  MXTRAIN_HD void OfDistribution(int64_t image, int64_t p, int side, C slope, C factor) const {
    const PointMaps<T>& maps = terms.maps;
    const auto at = maps.PlaceOf(p);
    const auto distribution = maps.DistributionOf(image, at, side);
    typename PointTerms<T>::Between to{0, C(0)};
    C weight = C(0);
    typename LabelledObjects<T>::Object object;
    const int32_t m = terms.targets.object[image * maps.points + p];
    if (factor != C(0) && terms.labels.Get(image, m, &object)) {
      to = terms.SideOfObject(at, object.box, side);
      weight =
          factor * terms.distribution_weight * terms.targets.score[image * maps.points + p] / C(4);
    }
    for (int64_t b = 0; b < maps.bins; ++b) {
      const C probability = distribution.Probability(maps.RawSide(image, at, side, b));
      const C wanted = b == to.lower ? C(1) - to.above : b == to.lower + 1 ? to.above : C(0);
      Assign(side_req[at.level], grads.level[at.level].sides, maps.SideIndex(image, at, side, b),
             slope * probability * (static_cast<C>(b) - distribution.mean) +
                 weight * (probability - wanted));
    }
  }
};

template <typename Device>
class PointBoxLoss final : public Operator {
 public:
  explicit PointBoxLoss(const PointBoxLossParam& param)
      : param_(param), form_(FormOfBins(param.bins, "PointBoxLoss")) {}

  void Forward(const ForwardArgs& args) override {
    const TBlob& out = args.out_data[0];
    const int64_t images = out.Size();
    if (images == 0) return;
    const Device device{args.ctx.run_ctx};
    SwitchFloating(out.type, "PointBoxLoss", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using C = ComputeOf<T>;
      const PointMaps<T> maps(param_.strides, args.in_data, form_);
      const LabelledObjects<T> labels(args.in_data.back(), maps.classes);
      const PointLossSpace<Targets, C> space(args, images, maps.points);
      const Targets<C>& targets = space.targets;
      const Wishes<C> wishes(space.rest, images * labels.most, param_.candidates);
      Launch(device, images * labels.most,
             ChooseCandidates<T>{maps, labels, wishes, static_cast<C>(param_.score_power),
                                 static_cast<C>(param_.overlap_power)});
      Launch(device, images, AssignPoints<T>{maps, labels, wishes, targets});
      if (args.req[0] == OpReqType::kNullOp) return;
      ForRows(device, images, maps.points * maps.classes,
              SumImage<T>{TermsOf(maps, labels, targets), args.req[0], out.template dptr<T>()});
    });
  }

  void Backward(const BackwardArgs& args) override {
    const TBlob& scores = args.in_data[0];
    const int64_t images = scores.shape[0];
    if (images == 0) return;
    SwitchFloating(scores.type, "PointBoxLoss", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using C = ComputeOf<T>;
      const PointMaps<T> maps(param_.strides, args.in_data, form_);
      const Targets<C> targets(args.ctx.saved[0].data, images, maps.points);
      const LabelledObjects<T> labels(args.in_data.back(), maps.classes);
      DifferentiatePoint<T> body{TermsOf(maps, labels, targets),
                                 static_cast<C>(param_.grad_scale),
                                 PointMaps<T>(param_.strides, args.in_grad, form_),
                                 {},
                                 {}};
      for (int l = 0; l < maps.levels; ++l) {
        body.score_req[l] = args.req[static_cast<size_t>(l)];
        body.side_req[l] = args.req[static_cast<size_t>(maps.levels + l)];
      }
      Launch(Device{args.ctx.run_ctx}, images * maps.points, body);
    });
  }

 private:
  template <typename T, typename C>
  PointTerms<T> TermsOf(const PointMaps<T>& maps, const LabelledObjects<T>& labels,
                        const Targets<C>& targets) const {
    return {maps,
            labels,
            targets,
            param_.focal_gamma,
            static_cast<C>(param_.box_weight),
            static_cast<C>(param_.distribution_weight)};
  }

  const PointBoxLossParam param_;
  const int form_;
};

template <typename Device>
Expected<Plan, Refusal> MakePlan(const OperatorProperty& base, const PlanRequest& request,
                                 Backend&) {
  const PointBoxLossParam& param = static_cast<const PointBoxLossProperty&>(base).param();
  const TShape& label = request.in.back().shape;
  const Expected<int64_t, Refusal> points = CountPoints(param.strides, request);
  if (!points) return points.error();
  const auto plan_in = [&](auto number) {
    using C = decltype(number);
    return PointLossPlan<Targets, C>(base, request, *points,
                                     Wishes<C>::Bytes(label[0] * label[1], param.candidates));
  };
  Plan plan = request.in[0].type == DType::kFloat64 ? plan_in(double{}) : plan_in(float{});
  plan.make = [param] { return std::make_unique<PointBoxLoss<Device>>(param); };
  return plan;
}

}  // namespace mxtrain::point_box_loss

MXTRAIN_KERNELS(point_box_loss, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(LastKernel<Device>("PointBoxLoss", point_box_loss::MakePlan<Device>));
}
