// SPDX-License-Identifier: Apache-2.0
#pragma once
// In steps: every object finds how much an anchor overlaps it at most, every anchor its object; a
// sample of each image is drawn (operator/balanced_sample.h); a team sums the loss of an image.
#include <limits>
#include <memory>

#include "mxtrain/operator/balanced_sample.h"
#include "mxtrain/operator/matched_object.h"
#include "mxtrain/operator/operator.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operator/sum_images.h"
#include "mxtrain/operators/pyramid_proposal_loss/pyramid_proposal_loss.h"

namespace mxtrain::pyramid_proposal_loss {

// What is kept from forward to backward.
template <typename C>
struct Targets {
  C* share;       // [1]: N / max(S, 1)
  int32_t* role;  // [rows]: the number of an object, kBackground or kNothingLearnt

  static int64_t Bytes(int64_t rows) {
    return static_cast<int64_t>(sizeof(C)) + rows * static_cast<int64_t>(sizeof(int32_t));
  }
  explicit Targets(void* bytes)
      : share(static_cast<C*>(bytes)), role(reinterpret_cast<int32_t*>(share + 1)) {}
};

template <typename T>
struct Scene {
  using C = ComputeOf<T>;
  PyramidMaps<T> maps;
  LabelledObjects<T> objects;
  Targets<C> targets;
  MatchRule<C> rule;
};

// How much an anchor overlaps object i of all images at most.
template <typename T>
struct FindMost {
  using C = ComputeOf<T>;
  Scene<T> scene;
  C* most;  // [images, objects]

  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t i) const {
    const int64_t image = i / scene.objects.most;
    typename LabelledObjects<T>::Object object;
    const bool learnt = scene.objects.Get(image, i % scene.objects.most, &object) && object.learnt;
    C best = C(0);
    for (int64_t a = team.rank(); learnt && a < scene.maps.anchors; a += team.size()) {
      const auto at = scene.maps.PlaceOf(image * scene.maps.anchors + a);
      const C overlap = IntersectionOverUnion(scene.maps.AnchorCorners(at), object.box);
      if (overlap > best) best = overlap;
    }
    best = team.Fold(best, LargerOf{});
    if (team.rank() == 0) most[i] = best;
  }
};

template <typename T>
struct FindRole {
  using C = ComputeOf<T>;
  Scene<T> scene;
  const C* most;

  MXTRAIN_HD void operator()(int64_t row) const {
    const auto at = scene.maps.PlaceOf(row);
    const Corners<C> anchor = scene.maps.AnchorCorners(at);
    const BestObject<C> best = BestObjectOf(scene.objects, at.image, anchor);
    scene.targets.role[row] = IsBestOfSome(at.image, anchor)
                                  ? best.object
                                  : RoleOf(scene.objects, at.image, anchor, best, scene.rule);
  }
  // Whether no anchor overlaps some object more. Another kernel found the most, whose rounding may
  // differ on a GPU.
  MXTRAIN_HD bool IsBestOfSome(int64_t image, const Corners<C>& anchor) const {
    constexpr C kEqual = C(1) - C(1e-6);
    typename LabelledObjects<T>::Object object;
    for (int64_t m = 0; m < scene.objects.most; ++m) {
      const C wanted = most[image * scene.objects.most + m];
      if (wanted > C(0) && scene.objects.Get(image, m, &object) &&
          IntersectionOverUnion(anchor, object.box) >= wanted * kEqual)
        return true;
    }
    return false;
  }
};

// Nothing is learnt of what is not chosen.
struct DropOthers {
  int64_t anchors;
  const SampleCounts* counts;
  const uint32_t* order;
  int32_t* role;
  MXTRAIN_HD void operator()(int64_t i) const {
    const SampleCounts& own = counts[i / anchors];
    const int64_t place = i % anchors, background = place - own.objects;
    const bool chosen =
        background < 0 ? place < own.chosen_objects : background < own.chosen_background;
    if (!chosen) role[order[i]] = kNothingLearnt;
  }
};
template <typename C>
struct FindShare {
  int64_t images;
  const SampleCounts* counts;
  C* share;
  MXTRAIN_HD void operator()(int64_t) const {
    int64_t sum = 0;
    for (int64_t i = 0; i < images; ++i)
      sum += counts[i].chosen_objects + counts[i].chosen_background;
    *share = ShareOfImage<C>(images, sum);
  }
};

// The terms of the loss of an anchor.
template <typename T>
struct AnchorTerms {
  using C = ComputeOf<T>;
  using Place = typename PyramidMaps<T>::Place;
  Scene<T> scene;
  C box_weight;

  // How far the offsets are from their targets; of an anchor that is to find object m.
  MXTRAIN_HD BoxNumbers<C> Excess(const Place& at, int32_t m) const {
    typename LabelledObjects<T>::Object object;
    BoxNumbers<C> excess{};
    if (!scene.objects.Get(at.image, m, &object)) return excess;
    const BoxNumbers<C> target = OffsetsOf(CenteredOf(object.box), scene.maps.Anchor(at));
    for (int k = 0; k < 4; ++k) excess.at[k] = scene.maps.Offset(at, k) - target[k];
    return excess;
  }
  MXTRAIN_HD C LossOf(int64_t row) const {
    constexpr C kBeta = static_cast<C>(PyramidProposalLossProperty::kBeta);
    const int32_t m = scene.targets.role[row];
    if (m == kNothingLearnt) return C(0);
    const Place at = scene.maps.PlaceOf(row);
    const C score = scene.maps.Score(at);
    C loss = vector_math::Softplus(m >= 0 ? -score : score);
    if (m < 0) return loss;
    const BoxNumbers<C> excess = Excess(at, m);
    for (int k = 0; k < 4; ++k) loss += box_weight * SmoothL1Of(excess[k], kBeta);
    return loss;
  }
};

// The gradients of the score and the offsets of an anchor.
template <typename T>
struct DifferentiateAnchor {
  using C = ComputeOf<T>;
  AnchorTerms<T> terms;
  PyramidMaps<T> grads;
  C scale;
  OpReqType req[2 * kMostPyramidLevels];  // of the scores of each level, then of the offsets

  MXTRAIN_HD void operator()(int64_t row) const {
    constexpr C kBeta = static_cast<C>(PyramidProposalLossProperty::kBeta);
    const Scene<T>& scene = terms.scene;
    const auto at = scene.maps.PlaceOf(row);
    const int32_t m = scene.targets.role[row];
    const C factor = m == kNothingLearnt ? C(0) : scale * *scene.targets.share;
    const auto& level = grads.level[at.level];
    if (req[at.level] != OpReqType::kNullOp) {
      const C slope = vector_math::Sigmoid(scene.maps.Score(at)) - C(m >= 0);
      Assign(req[at.level], level.scores, grads.ScoreIndex(at),
             factor == C(0) ? C(0) : factor * slope);
    }
    const OpReqType of_offsets = req[grads.levels + at.level];
    if (of_offsets == OpReqType::kNullOp) return;
    BoxNumbers<C> excess{};
    if (m >= 0) excess = terms.Excess(at, m);
    for (int k = 0; k < 4; ++k) {
      Assign(of_offsets, level.offsets, grads.OffsetIndex(at, k),
             factor * terms.box_weight * SmoothL1Slope(excess[k], kBeta));
    }
  }
};

// Where things are in the workspace of forward.
template <typename Device, typename C>
struct Workspace {
  int64_t most, sample, targets, bytes;

  // `keeps`: whether the targets are saved elsewhere.
  Workspace(int64_t images, int64_t anchors, int64_t objects, bool keeps) {
    most = 0;
    sample = RoundUp(images * objects * static_cast<int64_t>(sizeof(C)), 64);
    targets = sample + RoundUp(BalancedSample<Device>::Bytes(images, anchors), 64);
    bytes = targets + (keeps ? 0 : Targets<C>::Bytes(images * anchors));
  }
};

template <typename Device>
class PyramidProposalLoss final : public Operator {
 public:
  explicit PyramidProposalLoss(const PyramidProposalLossParam& param) : param_(param) {}

  void Forward(const ForwardArgs& args) override {
    const TBlob& out = args.out_data[0];
    if (out.Size() == 0) return;
    const Device device{args.ctx.run_ctx};
    SwitchFloating(out.type, "PyramidProposalLoss", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using C = ComputeOf<T>;
      const bool keeps = !args.ctx.saved.empty();
      const PyramidMaps<T> maps(param_, args.in_data.first(args.in_data.size() - 1));
      const Workspace<Device, C> at(maps.images, maps.anchors, args.in_data.back().shape[1], keeps);
      char* const scratch = args.ctx.workspace.template dptr<char>();
      const Scene<T> scene =
          SceneOf<T>(args.in_data, keeps ? args.ctx.saved[0].data : scratch + at.targets);
      FindRoles(device, scene, reinterpret_cast<C*>(scratch + at.most));
      const BalancedSample<Device> sample(
          device, scene.targets.role, maps.images, maps.anchors,
          {int64_t{param_.samples}, static_cast<double>(param_.object_share)},
          args.ctx.requested[0].Draws(), scratch + at.sample);
      Launch(device, maps.rows(),
             DropOthers{maps.anchors, sample.counts(), sample.positions(), scene.targets.role});
      Launch(device, 1, FindShare<C>{maps.images, sample.counts(), scene.targets.share});
      if (args.req[0] == OpReqType::kNullOp) return;
      ForRows(device, maps.images, maps.anchors,
              SumImages<T, AnchorTerms<T>>{TermsOf(scene), maps.anchors, scene.targets.share,
                                           args.req[0], out.template dptr<T>()});
    });
  }

  void Backward(const BackwardArgs& args) override {
    const TBlob& scores = args.in_data[0];
    if (scores.shape[0] == 0) return;
    SwitchFloating(scores.type, "PyramidProposalLoss", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const Scene<T> scene = SceneOf<T>(args.in_data, args.ctx.saved[0].data);
      DifferentiateAnchor<T> body{
          TermsOf(scene), scene.maps, static_cast<ComputeOf<T>>(param_.grad_scale), {}};
      const int levels = scene.maps.levels;
      for (int l = 0; l < levels; ++l) {
        const auto of_scores = static_cast<size_t>(l), of_offsets = static_cast<size_t>(levels + l);
        body.req[l] = args.req[of_scores];
        body.req[levels + l] = args.req[of_offsets];
        body.grads.level[l].scores = static_cast<T*>(args.in_grad[of_scores].data);
        body.grads.level[l].offsets = static_cast<T*>(args.in_grad[of_offsets].data);
      }
      Launch(Device{args.ctx.run_ctx}, scene.maps.rows(), body);
    });
  }

 private:
  template <typename T>
  Scene<T> SceneOf(std::span<const TBlob> in, void* targets) const {
    using C = ComputeOf<T>;
    return {PyramidMaps<T>(param_, in.first(in.size() - 1)),
            LabelledObjects<T>(in.back(), std::numeric_limits<int32_t>::max()),
            Targets<C>(targets),
            {static_cast<C>(param_.foreground), static_cast<C>(param_.background)}};
  }
  template <typename T>
  AnchorTerms<T> TermsOf(const Scene<T>& scene) const {
    return {scene, static_cast<ComputeOf<T>>(param_.box_weight)};
  }
  template <typename T, typename C>
  static void FindRoles(const Device& device, const Scene<T>& scene, C* most) {
    const int64_t objects = scene.maps.images * scene.objects.most;
    ForRows(device, objects, scene.maps.anchors, FindMost<T>{scene, most});
    Launch(device, scene.maps.rows(), FindRole<T>{scene, most});
  }

  const PyramidProposalLossParam param_;
};

template <typename Device>
Expected<Plan, Refusal> MakePlan(const OperatorProperty& base, const PlanRequest& request,
                                 Backend&) {
  const auto& param = static_cast<const PyramidProposalLossProperty&>(base).param();
  const TShape& label = request.in.back().shape;
  std::vector<TBlob> shapes(request.in.size() - 1);  // without elements
  for (size_t i = 0; i < shapes.size(); ++i) shapes[i].shape = request.in[i].shape;
  const PyramidMaps<float> maps(param, shapes);
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (maps.rows() > kMost || label[0] * label[1] > kMost)
    return Refusal{format("it takes at most {} anchors and objects", kMost)};
  const bool wide = request.in[0].type == DType::kFloat64, keeps = request.needs_backward;
  Plan plan = PlainPlan(base, request);
  plan.forward_workspace =
      wide ? Workspace<Device, double>(maps.images, maps.anchors, label[1], keeps).bytes
           : Workspace<Device, float>(maps.images, maps.anchors, label[1], keeps).bytes;
  if (keeps)
    plan.saved = {wide ? Targets<double>::Bytes(maps.rows()) : Targets<float>::Bytes(maps.rows())};
  plan.make = [param] { return std::make_unique<PyramidProposalLoss<Device>>(param); };
  return plan;
}

}  // namespace mxtrain::pyramid_proposal_loss

MXTRAIN_KERNELS(pyramid_proposal_loss, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(
      LastKernel<Device>("PyramidProposalLoss", pyramid_proposal_loss::MakePlan<Device>));
}
