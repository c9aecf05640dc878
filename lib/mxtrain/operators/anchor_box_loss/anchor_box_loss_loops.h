// SPDX-License-Identifier: Apache-2.0
#pragma once
// In steps: every anchor finds the object that it overlaps most, every object the anchor; the
// anchors of the background of all images are ordered by their loss with one radix sort, then by
// image; a team sums the loss of an image.
#include <bit>
#include <cmath>
#include <limits>
#include <memory>

#include "mxtrain/operator/gather_order.h"
#include "mxtrain/operator/matched_object.h"
#include "mxtrain/operator/operator.h"
#include "mxtrain/operator/order_key.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operator/sum_images.h"
#include "mxtrain/operators/anchor_box_loss/anchor_box_loss.h"

namespace mxtrain::anchor_box_loss {

inline constexpr auto kRoleBytes = static_cast<int64_t>(sizeof(int32_t));

// What is kept from forward to backward.
template <typename C>
struct Targets {
  C* log_sum;     // [rows]: AnchorPredictions::LogSum
  C* share;       // [1]: N / max(P, 1)
  int32_t* role;  // [rows]: the number of an object, kBackground or kNothingLearnt

  static int64_t Bytes(int64_t rows) {
    return (rows + 1) * static_cast<int64_t>(sizeof(C)) + rows * kRoleBytes;
  }
  Targets(void* bytes, int64_t rows)
      : log_sum(static_cast<C*>(bytes)),
        share(log_sum + rows),
        role(reinterpret_cast<int32_t*>(share + 1)) {}
};

// The inputs and what is found.
template <typename T>
struct Scene {
  using C = ComputeOf<T>;
  AnchorPredictions<T> says;
  LabelledObjects<T> objects;
  Targets<C> targets;
  MatchRule<C> rule;

  using Object = typename LabelledObjects<T>::Object;

  MXTRAIN_HD C BackgroundLoss(int64_t row) const {
    return targets.log_sum[row] - says.Score(row, 0);
  }
};

template <typename T>
struct FindObject {
  using C = ComputeOf<T>;
  Scene<T> scene;

  MXTRAIN_HD void operator()(int64_t row) const {
    const int64_t image = row / scene.says.count;
    const Corners<C> anchor = scene.says.AnchorCorners(row);
    scene.targets.role[row] = RoleOf(scene.objects, image, anchor,
                                     BestObjectOf(scene.objects, image, anchor), scene.rule);
    scene.targets.log_sum[row] = scene.says.LogSum(row);
  }
};

template <typename C>
struct BestAnchor {
  C overlap;
  int64_t anchor;  // -1: none
};
struct BetterAnchor {
  template <typename C>
  MXTRAIN_HD BestAnchor<C> operator()(const BestAnchor<C>& a, const BestAnchor<C>& b) const {
    if (a.overlap != b.overlap) return a.overlap > b.overlap ? a : b;
    return a.anchor < b.anchor ? a : b;
  }
};
// Writes which anchor overlaps object i of all images most.
template <typename T>
struct FindAnchor {
  using C = ComputeOf<T>;
  Scene<T> scene;
  int32_t* anchor_of;  // [images, objects]; -1: none

  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t i) const {
    typename Scene<T>::Object object;
    const bool learnt =
        scene.objects.Get(i / scene.objects.most, i % scene.objects.most, &object) && object.learnt;
    BestAnchor<C> best{C(0), -1};
    for (int64_t a = team.rank(); learnt && a < scene.says.count; a += team.size()) {
      const C overlap = IntersectionOverUnion(scene.says.AnchorCorners(a), object.box);
      if (overlap > best.overlap) best = {overlap, a};
    }
    best = team.Fold(best, BetterAnchor{});
    if (team.rank() == 0) anchor_of[i] = static_cast<int32_t>(best.anchor);
  }
};
// Gives the objects of an image their anchors: the last object has its way.
template <typename T>
struct TakeAnchors {
  Scene<T> scene;
  const int32_t* anchor_of;
  MXTRAIN_HD void operator()(int64_t image) const {
    for (int64_t m = 0; m < scene.objects.most; ++m) {
      const int64_t anchor = anchor_of[image * scene.objects.most + m];
      if (anchor >= 0)
        scene.targets.role[image * scene.says.count + anchor] = static_cast<int32_t>(m);
    }
  }
};

template <typename T>
struct CountPositives {
  Scene<T> scene;
  int32_t* positives;  // [images]
  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t image) const {
    int32_t count = 0;
    const int32_t* role = scene.targets.role + image * scene.says.count;
    for (int64_t a = team.rank(); a < scene.says.count; a += team.size()) count += role[a] >= 0;
    count = team.Fold(count, AddBoth{});
    if (team.rank() == 0) positives[image] = count;
  }
};
template <typename C>
struct FindShare {
  int64_t images;
  const int32_t* positives;
  C* share;
  MXTRAIN_HD void operator()(int64_t) const {
    int64_t sum = 0;
    for (int64_t i = 0; i < images; ++i) sum += positives[i];
    *share = ShareOfImage<C>(images, sum);
  }
};

// Anchors of the background, that with the largest loss first; others are last.
template <typename T>
struct LossKey {
  Scene<T> scene;
  MXTRAIN_HD auto operator()(int64_t row) const {
    using K = KeyOf<ComputeOf<T>>;
    if (scene.targets.role[row] != kBackground) return ~K{0};
    return MakeKey(scene.BackgroundLoss(row), /*ascend=*/false);
  }
};
template <typename K>
struct ImageKey {
  int64_t anchors;
  MXTRAIN_HD K operator()(int64_t row) const { return static_cast<K>(row / anchors); }
};
// Nothing is learnt of those behind the first ones of an image.
template <typename T>
struct DropEasy {
  Scene<T> scene;
  const int32_t* positives;
  float ratio;
  const uint32_t* order;
  MXTRAIN_HD void operator()(int64_t i) const {
    const int64_t image = i / scene.says.count, place = i % scene.says.count;
    int32_t& role = scene.targets.role[order[i]];
    if (role == kBackground &&
        !(static_cast<float>(place) < ratio * static_cast<float>(positives[image])))
      role = kNothingLearnt;
  }
};

// The terms of the loss of an anchor.
template <typename T>
struct AnchorTerms {
  using C = ComputeOf<T>;
  Scene<T> scene;
  C box_weight;

  // The column of the class that the scores are to say, and how far the offsets are from their
  // targets; for anchors of which something is learnt.
  struct Wanted {
    int64_t column = 0;
    bool has_box = false;
    BoxNumbers<C> excess = {};
  };
  MXTRAIN_HD Wanted WantedOf(int64_t row) const {
    Wanted wanted;
    const int32_t m = scene.targets.role[row];
    typename Scene<T>::Object object;
    if (m < 0 || !scene.objects.Get(row / scene.says.count, m, &object)) return wanted;
    const BoxNumbers<C> target = OffsetsOf(CenteredOf(object.box), scene.says.Anchor(row));
    wanted.column = object.label + 1;
    wanted.has_box = true;
    for (int k = 0; k < 4; ++k)
      wanted.excess.at[k] = scene.says.Offset(row, k) - target[k] / scene.says.variances[k];
    return wanted;
  }
  MXTRAIN_HD C LossOf(int64_t row) const {
    if (scene.targets.role[row] == kNothingLearnt) return C(0);
    const Wanted wanted = WantedOf(row);
    C boxes = C(0);
    for (int k = 0; wanted.has_box && k < 4; ++k) boxes += SmoothL1Of(wanted.excess[k], C(1));
    return scene.targets.log_sum[row] - scene.says.Score(row, wanted.column) + box_weight * boxes;
  }
};

// The gradients of the scores and offsets of an anchor.
template <typename T>
struct DifferentiateAnchor {
  using C = ComputeOf<T>;
  AnchorTerms<T> terms;
  C scale;
  OpReqType req[2];
  T *scores, *offsets;

  MXTRAIN_HD void operator()(int64_t row) const {
    const auto& [says, objects, targets, rule] = terms.scene;
    const bool learnt = targets.role[row] != kNothingLearnt;
    typename AnchorTerms<T>::Wanted wanted;
    if (learnt) wanted = terms.WantedOf(row);
    const C factor = scale * *targets.share;
    for (int64_t k = 0; req[kAnchorScores] != OpReqType::kNullOp && k < says.columns; ++k) {
      const C slope = !learnt ? C(0)
                              : vector_math::Exp(says.Score(row, k) - targets.log_sum[row]) -
                                    C(k == wanted.column);
      Assign(req[kAnchorScores], scores, row * says.columns + k, factor * slope);
    }
    for (int k = 0; req[kAnchorOffsets] != OpReqType::kNullOp && k < 4; ++k) {
      const C slope = SmoothL1Slope(wanted.excess[k], C(1));
      Assign(req[kAnchorOffsets], offsets, row * 4 + k, factor * terms.box_weight * slope);
    }
  }
};

// Where things are in the workspace of forward.
template <typename Device, typename C>
struct Workspace {
  using Order = PositionOrder<KeyOf<C>, Device>;
  int64_t positives, anchor_of, order, targets, bytes;

  // `keeps`: whether the targets are saved elsewhere.
  Workspace(int64_t images, int64_t rows, int64_t objects, bool keeps) {
    positives = 0;
    anchor_of = RoundUp(images * kRoleBytes, 64);
    order = anchor_of + RoundUp(images * objects * kRoleBytes, 64);
    targets = order + RoundUp(Order::Bytes(rows), 64);
    bytes = targets + (keeps ? 0 : Targets<C>::Bytes(rows));
  }
};

template <typename Device>
class AnchorBoxLoss final : public Operator {
 public:
  explicit AnchorBoxLoss(const AnchorBoxLossParam& param) : param_(param) {}

  void Forward(const ForwardArgs& args) override {
    const TBlob& out = args.out_data[0];
    if (out.Size() == 0) return;
    const Device device{args.ctx.run_ctx};
    SwitchFloating(out.type, "AnchorBoxLoss", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using C = ComputeOf<T>;
      const bool keeps = !args.ctx.saved.empty();
      const TShape& scores = args.in_data[kAnchorScores].shape;
      const Workspace<Device, C> at(scores[0], scores[0] * scores[1],
                                    args.in_data[AnchorBoxLossProperty::kLabel].shape[1], keeps);
      char* const scratch = args.ctx.workspace.template dptr<char>();
      const Scene<T> scene =
          SceneOf<T>(args.in_data, keeps ? args.ctx.saved[0].data : scratch + at.targets);
      auto* const positives = reinterpret_cast<int32_t*>(scratch + at.positives);
      FindRoles(device, scene, positives, reinterpret_cast<int32_t*>(scratch + at.anchor_of));
      DropEasyOnes(device, scene, positives, scratch + at.order);
      if (args.req[0] == OpReqType::kNullOp) return;
      ForRows(device, scene.says.images, scene.says.count,
              SumImages<T, AnchorTerms<T>>{TermsOf(scene), scene.says.count, scene.targets.share,
                                           args.req[0], out.template dptr<T>()});
    });
  }

  void Backward(const BackwardArgs& args) override {
    const TBlob& scores = args.in_data[kAnchorScores];
    if (scores.shape[0] == 0) return;
    SwitchFloating(scores.type, "AnchorBoxLoss", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const Scene<T> scene = SceneOf<T>(args.in_data, args.ctx.saved[0].data);
      Launch(Device{args.ctx.run_ctx}, scene.says.rows(),
             DifferentiateAnchor<T>{TermsOf(scene),
                                    static_cast<ComputeOf<T>>(param_.grad_scale),
                                    {args.req[kAnchorScores], args.req[kAnchorOffsets]},
                                    static_cast<T*>(args.in_grad[kAnchorScores].data),
                                    static_cast<T*>(args.in_grad[kAnchorOffsets].data)});
    });
  }

 private:
  template <typename T>
  Scene<T> SceneOf(std::span<const TBlob> in, void* targets) const {
    using C = ComputeOf<T>;
    const AnchorPredictions<T> says(param_, in);
    const auto threshold = static_cast<C>(param_.overlap_threshold);
    return {says,
            LabelledObjects<T>(in[AnchorBoxLossProperty::kLabel], says.columns - 1),
            Targets<C>(targets, says.rows()),
            {threshold, threshold}};
  }
  template <typename T>
  AnchorTerms<T> TermsOf(const Scene<T>& scene) const {
    return {scene, static_cast<ComputeOf<T>>(param_.box_weight)};
  }
  template <typename T>
  static void FindRoles(const Device& device, const Scene<T>& scene, int32_t* positives,
                        int32_t* anchor_of) {
    const int64_t images = scene.says.images;
    Launch(device, scene.says.rows(), FindObject<T>{scene});
    ForRows(device, images * scene.objects.most, scene.says.count, FindAnchor<T>{scene, anchor_of});
    Launch(device, images, TakeAnchors<T>{scene, anchor_of});
    ForRows(device, images, scene.says.count, CountPositives<T>{scene, positives});
    Launch(device, 1, FindShare<ComputeOf<T>>{images, positives, scene.targets.share});
  }
  template <typename T>
  void DropEasyOnes(const Device& device, const Scene<T>& scene, const int32_t* positives,
                    char* scratch) const {
    using K = KeyOf<ComputeOf<T>>;
    const auto& says = scene.says;
    PositionOrder<K, Device> order(device, says.rows(), scratch);
    order.SortBy(LossKey<T>{scene}, 8 * static_cast<int>(sizeof(K)));
    if (says.images > 1) {
      order.SortBy(ImageKey<K>{says.count},
                   static_cast<int>(std::bit_width(static_cast<uint64_t>(says.images - 1))));
    }
    Launch(device, says.rows(),
           DropEasy<T>{scene, positives, param_.negative_ratio, order.positions()});
  }

  const AnchorBoxLossParam param_;
};

template <typename Device>
Expected<Plan, Refusal> MakePlan(const OperatorProperty& base, const PlanRequest& request,
                                 Backend&) {
  const TShape &scores = request.in[kAnchorScores].shape,
               &label = request.in[AnchorBoxLossProperty::kLabel].shape;
  const int64_t rows = scores[0] * scores[1];
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (rows > kMost || label[0] * label[1] > kMost)
    return Refusal{format("it takes at most {} anchors and objects", kMost)};
  const bool wide = request.in[0].type == DType::kFloat64, keeps = request.needs_backward;
  Plan plan = PlainPlan(base, request);
  plan.forward_workspace = wide ? Workspace<Device, double>(scores[0], rows, label[1], keeps).bytes
                                : Workspace<Device, float>(scores[0], rows, label[1], keeps).bytes;
  if (keeps) plan.saved = {wide ? Targets<double>::Bytes(rows) : Targets<float>::Bytes(rows)};
  plan.make = [param = static_cast<const AnchorBoxLossProperty&>(base).param()] {
    return std::make_unique<AnchorBoxLoss<Device>>(param);
  };
  return plan;
}

}  // namespace mxtrain::anchor_box_loss

MXTRAIN_KERNELS(anchor_box_loss, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(LastKernel<Device>("AnchorBoxLoss", anchor_box_loss::MakePlan<Device>));
}
