// SPDX-License-Identifier: Apache-2.0
#pragma once
// After the assignment a team sums the loss of an image; backward differentiates the terms of the
// loss, those of boxes with dual numbers.
#include <memory>

#include "mxtrain/operator/operator.h"
#include "mxtrain/operators/sim_ota_loss/sim_ota_loss_assign.h"

namespace mxtrain::sim_ota_loss {

// The terms of the loss at a point.
template <typename T>
struct PointTerms {
  using C = ComputeOf<T>;
  using Place = typename PointMaps<T>::Place;
  PointMaps<T> maps;
  LabelledObjects<T> labels;
  Targets<C> targets;
  C box_weight, objectness_weight, class_weight, l1_weight;

  // What point p of an image is to find; none if `found` is false.
  struct Target {
    bool learnt, found;
    typename LabelledObjects<T>::Object object;
    C overlap;
  };
  MXTRAIN_HD Target TargetOf(int64_t image, int64_t p) const {
    const int64_t i = image * maps.points + p;
    const int32_t m = targets.object[i];
    Target target{m != kNothingLearnt, m >= 0, {}, targets.overlap[i]};
    if (m >= 0) labels.Get(image, m, &target.object);
    return target;
  }
  // BCE of the logit z, and its derivative.
  MXTRAIN_HD static Dual<C> Entropy(C z, C y) {
    return {vector_math::Softplus(z) - y * z, vector_math::Sigmoid(z) - y};
  }
  MXTRAIN_HD Dual<C> ObjectnessTerm(int64_t image, const Place& at, const Target& target) const {
    return Dual<C>(objectness_weight) *
           Entropy(maps.Objectness(image, at), target.found ? C(1) : C(0));
  }
  // Of a point that is to find an object.
  MXTRAIN_HD Dual<C> ClassTerm(int64_t image, const Place& at, const Target& target,
                               int64_t k) const {
    return Dual<C>(class_weight) *
           Entropy(maps.Score(image, at, k), k == target.object.label ? target.overlap : C(0));
  }
  // What the map would say of the object.
  MXTRAIN_HD C SideOf(const typename LabelledObjects<T>::Object& object, const Place& at,
                      int side) const {
    const C stride = maps.level[at.level].stride;
    const Corners<C>& box = object.box;
    if (side == 0) return ((box.left + box.right) / C(2) - at.x) / stride + C(0.5);
    if (side == 1) return ((box.top + box.bottom) / C(2) - at.y) / stride + C(0.5);
    const C length = side == 2 ? box.right - box.left : box.bottom - box.top;
    return vector_math::Log(length / stride + C(1e-8));
  }
  // Of a point that is to find an object, differentiated by one of the four numbers; -1: by none.
  MXTRAIN_HD Dual<C> BoxTerm(int64_t image, const Place& at, const Target& target, int by) const {
    Dual<C> side[4], distance(0);
    for (int s = 0; s < 4; ++s) {
      side[s] = Dual<C>(maps.Side(image, at, s), C(s == by ? 1 : 0));
      const C gap = maps.RawSide(image, at, s) - SideOf(target.object, at, s);
      const C sign = C(gap > C(0) ? 1 : gap < C(0) ? -1 : 0);
      distance += Dual<C>(sign * gap, s == by ? sign : C(0));
    }
    const Corners<C>& own = target.object.box;
    const Dual<C> overlap =
        IntersectionOverUnion(maps.BoxOf(at, side[0], side[1], side[2], side[3]),
                              Corners<Dual<C>>{Dual<C>(own.left), Dual<C>(own.top),
                                               Dual<C>(own.right), Dual<C>(own.bottom)});
    return Dual<C>(box_weight) * (Dual<C>(1) - overlap * overlap) + Dual<C>(l1_weight) * distance;
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
      const auto target = terms.TargetOf(image, p);
      if (!target.learnt) continue;
      const auto at = terms.maps.PlaceOf(p);
      C of_point = terms.ObjectnessTerm(image, at, target).value;
      if (target.found) {
        of_point += terms.BoxTerm(image, at, target, -1).value;
        for (int64_t k = 0; k < terms.maps.classes; ++k)
          of_point += terms.ClassTerm(image, at, target, k).value;
      }
      sum += static_cast<double>(of_point);
    }
    sum = team.Fold(sum, AddBoth{});
    if (team.rank() == 0)
      Assign(req, out, image, static_cast<C>(sum * static_cast<double>(*terms.targets.factor)));
  }
};

// The gradients of the maps at point i % points of an image.
template <typename T>
struct DifferentiatePoint {
  using C = ComputeOf<T>;
  PointTerms<T> terms;
  C scale;
  PointMaps<T> grads;
  OpReqType score_req[kMostPointLevels], side_req[kMostPointLevels],
      objectness_req[kMostPointLevels];

  MXTRAIN_HD void operator()(int64_t i) const {
    const int64_t image = i / terms.maps.points, p = i % terms.maps.points;
    const auto at = terms.maps.PlaceOf(p);
    const auto target = terms.TargetOf(image, p);
    const auto& grad = grads.level[at.level];
    const C factor = scale * *terms.targets.factor;
    if (const OpReqType req = objectness_req[at.level]; req != OpReqType::kNullOp) {
      Assign(req, grad.objectness, terms.maps.ObjectnessIndex(image, at),
             target.learnt ? factor * terms.ObjectnessTerm(image, at, target).slope : C(0));
    }
    if (const OpReqType req = score_req[at.level]; req != OpReqType::kNullOp) {
      for (int64_t k = 0; k < terms.maps.classes; ++k) {
        Assign(req, grad.scores, terms.maps.ScoreIndex(image, at, k),
               target.found ? factor * terms.ClassTerm(image, at, target, k).slope : C(0));
      }
    }
    if (const OpReqType req = side_req[at.level]; req != OpReqType::kNullOp) {
      for (int s = 0; s < 4; ++s) {
        Assign(req, grad.sides, terms.maps.SideIndex(image, at, s),
               target.found ? factor * terms.BoxTerm(image, at, target, s).slope : C(0));
      }
    }
  }
};

template <typename Device>
class SimOtaLoss final : public Operator {
 public:
  explicit SimOtaLoss(const SimOtaLossParam& param) : param_(param) {}

  void Forward(const ForwardArgs& args) override {
    const TBlob& out = args.out_data[0];
    const int64_t images = out.Size();
    if (images == 0) return;
    SwitchFloating(out.type, "SimOtaLoss", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using C = ComputeOf<T>;
      const PointMaps<T> maps(param_.strides, args.in_data, kCenters);
      const LabelledObjects<T> labels(args.in_data.back(), maps.classes);
      const PointLossSpace<Targets, C> space(args, images, maps.points);
      const Device device{args.ctx.run_ctx};
      FindTargets(device, images, maps, labels, space.rest, space.targets);
      if (args.req[0] == OpReqType::kNullOp) return;
      ForRows(
          device, images, maps.points * maps.classes,
          SumImage<T>{TermsOf(maps, labels, space.targets), args.req[0], out.template dptr<T>()});
    });
  }

  void Backward(const BackwardArgs& args) override {
    const TBlob& scores = args.in_data[0];
    const int64_t images = scores.shape[0];
    if (images == 0) return;
    SwitchFloating(scores.type, "SimOtaLoss", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using C = ComputeOf<T>;
      const PointMaps<T> maps(param_.strides, args.in_data, kCenters);
      const LabelledObjects<T> labels(args.in_data.back(), maps.classes);
      const Targets<C> targets(args.ctx.saved[0].data, images, maps.points);
      DifferentiatePoint<T> body{TermsOf(maps, labels, targets),
                                 static_cast<C>(param_.grad_scale),
                                 PointMaps<T>(param_.strides, args.in_grad, kCenters),
                                 {},
                                 {},
                                 {}};
      const auto req = [&](int map, int l) {
        return args.req[static_cast<size_t>(map * maps.levels + l)];
      };
      for (int l = 0; l < maps.levels; ++l) {
        body.score_req[l] = req(0, l);
        body.side_req[l] = req(1, l);
        body.objectness_req[l] = req(2, l);
      }
      Launch(Device{args.ctx.run_ctx}, images * maps.points, body);
    });
  }

 private:
  template <typename T, typename C>
  void FindTargets(const Device& device, int64_t images, const PointMaps<T>& maps,
                   const LabelledObjects<T>& labels, void* scratch,
                   const Targets<C>& targets) const {
    const Pairs<T> pairs{maps, labels, static_cast<C>(param_.center_radius),
                         static_cast<C>(param_.overlap_cost)};
    const Offers<C> offers(scratch, images, maps.points, labels.most, param_.candidates);
    Launch(device, images * maps.points, FindCandidates<T>{pairs, offers});
    ForRows(device, images * labels.most, maps.points, ChooseCheapest<T>{pairs, offers});
    Launch(device, images, AssignPoints<T>{pairs, offers, targets});
    Launch(device, 1, CountFound<C>{targets, images});
  }
  template <typename T, typename C>
  PointTerms<T> TermsOf(const PointMaps<T>& maps, const LabelledObjects<T>& labels,
                        const Targets<C>& targets) const {
    return {maps,
            labels,
            targets,
            static_cast<C>(param_.box_weight),
            static_cast<C>(param_.objectness_weight),
            static_cast<C>(param_.class_weight),
            static_cast<C>(param_.l1_weight)};
  }

  const SimOtaLossParam param_;
};

template <typename Device>
Expected<Plan, Refusal> MakePlan(const OperatorProperty& base, const PlanRequest& request,
                                 Backend&) {
  const SimOtaLossParam& param = static_cast<const SimOtaLossProperty&>(base).param();
  const Expected<int64_t, Refusal> points = CountPoints(param.strides, request);
  if (!points) return points.error();
  const TShape& label = request.in.back().shape;
  const auto plan_in = [&](auto number) {
    using C = decltype(number);
    return PointLossPlan<Targets, C>(
        base, request, *points, Offers<C>::Bytes(label[0], *points, label[1], param.candidates));
  };
  Plan plan = request.in[0].type == DType::kFloat64 ? plan_in(double{}) : plan_in(float{});
  plan.make = [param] { return std::make_unique<SimOtaLoss<Device>>(param); };
  return plan;
}

}  // namespace mxtrain::sim_ota_loss

MXTRAIN_KERNELS(sim_ota_loss, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(LastKernel<Device>("SimOtaLoss", sim_ota_loss::MakePlan<Device>));
}
