// SPDX-License-Identifier: Apache-2.0
#pragma once
// In steps: every anchor finds the object that it overlaps most; a team matches the anchors of an
// image with its objects, then says what each anchor is for; with mining the anchors of all images
// are ordered by the probability of the background with one radix sort, then by image.
#include <bit>
#include <limits>
#include <memory>

#include "mxtrain/operator/box_offsets.h"
#include "mxtrain/operator/gather_order.h"
#include "mxtrain/operator/greedy_matching.h"
#include "mxtrain/operator/order_key.h"
#include "mxtrain/operators/multibox_target/multibox_target.h"

namespace mxtrain::multibox_target {

struct Geometry {
  int64_t images = 0, objects = 0, columns = 0, classes = 0, anchors = 0;
  Geometry(const TShape& label, const TShape& scores)
      : images(label[0]),
        objects(label[1]),
        columns(label[2]),
        classes(scores[1]),
        anchors(scores[2]) {}
  MXTRAIN_HD int64_t rows() const { return images * anchors; }
};

// The inputs. Row i is anchor i % anchors of image i / anchors.
template <typename T>
struct Scene {
  using C = ComputeOf<T>;
  Geometry shape;
  const T *anchors, *labels, *logits;

  MXTRAIN_HD const T* Label(int64_t image, int64_t object) const {
    return labels + (image * shape.objects + object) * shape.columns;
  }
  MXTRAIN_HD int64_t Objects(int64_t image) const {
    int64_t count = 0;
    while (count < shape.objects && static_cast<C>(Label(image, count)[0]) != C(-1)) ++count;
    return count;
  }
  MXTRAIN_HD C Overlap(int64_t image, int64_t anchor, int64_t object) const {
    return IntersectionOverUnion(ReadBox(anchors + anchor * 4, kBoxCorner),
                                 ReadBox(Label(image, object) + 1, kBoxCorner));
  }
  // The probability of class 0.
  MXTRAIN_HD C Background(int64_t row) const {
    const T* x = logits + row / shape.anchors * shape.classes * shape.anchors + row % shape.anchors;
    C largest = static_cast<C>(x[0]);
    for (int64_t k = 1; k < shape.classes; ++k) {
      const C logit = static_cast<C>(x[k * shape.anchors]);
      largest = logit > largest ? logit : largest;
    }
    C sum = C(0);
    for (int64_t k = 0; k < shape.classes; ++k)
      sum += vector_math::Exp(static_cast<C>(x[k * shape.anchors]) - largest);
    return vector_math::Exp(static_cast<C>(x[0]) - largest) / sum;
  }
};

// For MatchGreedily: anchors are rows, objects columns.
template <typename T>
struct Overlaps {
  Scene<T> scene;
  MXTRAIN_HD ComputeOf<T> operator()(int64_t image, int64_t anchor, int64_t object) const {
    return scene.Overlap(image, anchor, object);
  }
  MXTRAIN_HD int64_t Columns(int64_t image) const { return scene.Objects(image); }
};

enum Role : int32_t { kIgnored, kBackground, kFinds };

// What is known of each row, and of each image.
template <typename C>
struct Rows {
  C* overlap;       // with the object that the anchor overlaps most; -1: there is no object
  int32_t* object;  // its number; of an anchor that finds an object, that one
  int32_t* role;
  int32_t* negatives;  // [images]: how many are to be of the background

  static int64_t Bytes(const Geometry& shape) {
    constexpr auto kOfRow = static_cast<int64_t>(sizeof(C) + 2 * sizeof(int32_t));
    return shape.rows() * kOfRow + shape.images * static_cast<int64_t>(sizeof(int32_t));
  }
  Rows(void* scratch, const Geometry& shape)
      : overlap(static_cast<C*>(scratch)),
        object(reinterpret_cast<int32_t*>(overlap + shape.rows())),
        role(object + shape.rows()),
        negatives(role + shape.rows()) {}
};

template <typename T>
struct FindObject {
  using C = ComputeOf<T>;
  Scene<T> scene;
  Rows<C> rows;
  MXTRAIN_HD void operator()(int64_t row) const {
    const int64_t image = row / scene.shape.anchors, count = scene.Objects(image);
    C best = C(-1);
    int32_t object = -1;
    for (int64_t m = 0; m < count; ++m) {
      const C overlap = scene.Overlap(image, row % scene.shape.anchors, m);
      if (overlap > best) best = overlap, object = static_cast<int32_t>(m);
    }
    rows.overlap[row] = best;
    rows.object[row] = object;
  }
};

// Says what the anchors of an image are for, as far as that is known without their order.
template <typename T>
struct AssignRoles {
  using C = ComputeOf<T>;
  Scene<T> scene;
  Rows<C> rows;
  const int32_t* matched;  // [images, anchors]: the object of an anchor; -1: none
  C overlap_threshold;
  bool mines;
  float ratio;
  int64_t minimum;

  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t image) const {
    const int64_t first = image * scene.shape.anchors, last = first + scene.shape.anchors;
    const bool has_objects = scene.Objects(image) > 0;
    int64_t finding = 0;
    for (int64_t row = first + team.rank(); row < last; row += team.size()) {
      const bool overlaps = overlap_threshold > C(0) && rows.overlap[row] > overlap_threshold;
      const bool finds = matched[row] >= 0 || overlaps;
      if (matched[row] >= 0) rows.object[row] = matched[row];
      rows.role[row] = finds ? kFinds : has_objects && !mines ? kBackground : kIgnored;
      finding += finds ? 1 : 0;
    }
    finding = team.Fold(finding, AddBoth{});
    if (mines && team.rank() == 0)
      rows.negatives[image] = static_cast<int32_t>(Negatives(finding, last - first - finding));
  }
  MXTRAIN_HD int64_t Negatives(int64_t finding, int64_t others) const {
    const float wanted = static_cast<float>(finding) * ratio;
    int64_t count = wanted < static_cast<float>(others) ? static_cast<int64_t>(wanted) : others;
    if (count < minimum) count = minimum;
    return count < others ? count : others;
  }
};

// Those that may be of the background, by its probability.
template <typename T>
struct Candidates {
  using C = ComputeOf<T>;
  Scene<T> scene;
  Rows<C> rows;
  C threshold;
  MXTRAIN_HD bool Has(int64_t row) const {
    return rows.role[row] != kFinds && rows.overlap[row] < threshold;
  }
  MXTRAIN_HD KeyOf<C> operator()(int64_t row) const {
    return Has(row) ? MakeKey(scene.Background(row), /*ascend=*/true) : ~KeyOf<C>{0};
  }
};
template <typename K>
struct ImageKey {
  int64_t anchors;
  MXTRAIN_HD K operator()(int64_t row) const { return static_cast<K>(row / anchors); }
};
template <typename T>
struct TakeNegative {
  Candidates<T> candidates;
  const uint32_t* order;
  MXTRAIN_HD void operator()(int64_t i) const {
    const int64_t anchors = candidates.scene.shape.anchors;
    const auto row = static_cast<int64_t>(order[i]);
    if (i % anchors < candidates.rows.negatives[i / anchors] && candidates.Has(row))
      candidates.rows.role[row] = kBackground;
  }
};

template <typename T>
struct WriteTargets {
  using C = ComputeOf<T>;
  using P = MultiBoxTargetProperty;
  Scene<T> scene;
  Rows<C> rows;
  BoxNumbers<C> variances;
  C ignore_label;
  OpReqType req[3];
  T* out[3];

  MXTRAIN_HD void operator()(int64_t row) const {
    const bool finds = rows.role[row] == kFinds;
    BoxNumbers<C> offsets{};
    C label = rows.role[row] == kBackground ? C(0) : ignore_label;
    if (finds) {
      const T* object = scene.Label(row / scene.shape.anchors, rows.object[row]);
      label = static_cast<C>(object[0]) + C(1);
      offsets = OffsetsOf(ReadCentered(object + 1, kBoxCorner),
                          ReadCentered(scene.anchors + row % scene.shape.anchors * 4, kBoxCorner));
    }
    for (int k = 0; k < 4; ++k) {
      Put(P::kBoxTarget, row * 4 + k, offsets[k] / variances[k]);
      Put(P::kBoxMask, row * 4 + k, C(finds));
    }
    Put(P::kClassTarget, row, label);
  }
  MXTRAIN_HD void Put(int output, int64_t i, C value) const {
    if (req[output] != OpReqType::kNullOp) Assign(req[output], out[output], i, value);
  }
};

// Where things are in the workspace.
template <typename Device, typename C>
struct Workspace {
  using Order = PositionOrder<KeyOf<C>, Device>;
  int64_t matches, order, bytes;

  Workspace(const Geometry& shape, const MultiBoxTargetParam& param) {
    matches = RoundUp(Rows<C>::Bytes(shape), 64);
    order =
        matches + RoundUp(GreedyMatches<C>::Bytes(shape.images, shape.anchors, shape.objects), 64);
    bytes = order + (param.Mines() ? Order::Bytes(shape.rows()) : 0);
  }
};

template <typename Device>
class MultiBoxTarget final : public Operator {
 public:
  explicit MultiBoxTarget(const MultiBoxTargetParam& param) : param_(param) {}

  void Forward(const ForwardArgs& args) override {
    using P = MultiBoxTargetProperty;
    const TBlob &anchor = args.in_data[P::kAnchor], &label = args.in_data[P::kLabel],
                &scores = args.in_data[P::kClassPred];
    const Geometry shape(label.shape, scores.shape);
    if (shape.rows() == 0) return;
    SwitchFloating(scores.type, "MultiBoxTarget", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using C = ComputeOf<T>;
      const Device device{args.ctx.run_ctx};
      const Scene<T> scene{shape, anchor.dptr<T>(), label.dptr<T>(), scores.dptr<T>()};
      char* const scratch = args.ctx.workspace.template dptr<char>();
      const Rows<C> rows(scratch, shape);
      FindRoles(device, scene, rows, scratch);
      WriteTargets<T> body{
          scene, rows, VariancesOf<C>(param_.variances), static_cast<C>(param_.ignore_label),
          {},    {}};
      for (size_t i = 0; i < 3; ++i) {
        body.req[i] = args.req[i];
        body.out[i] = args.out_data[i].template dptr<T>();
      }
      Launch(device, shape.rows(), body);
    });
  }

 private:
  template <typename T, typename C>
  void FindRoles(const Device& device, const Scene<T>& scene, const Rows<C>& rows,
                 char* scratch) const {
    const Geometry& shape = scene.shape;
    const Workspace<Device, C> at(shape, param_);
    const GreedyMatches<C> matches(scratch + at.matches, shape.images, shape.anchors,
                                   shape.objects);
    const auto threshold = [](float value) { return static_cast<C>(value); };
    Launch(device, shape.rows(), FindObject<T>{scene, rows});
    ForRows(device, shape.images, shape.anchors * shape.objects,
            MatchGreedily<C, Overlaps<T>>{
                {scene}, shape.anchors, shape.objects, C(1e-6), shape.objects, matches});
    ForRows(device, shape.images, shape.anchors,
            AssignRoles<T>{scene, rows, matches.column_of_row, threshold(param_.overlap_threshold),
                           param_.Mines(), param_.negative_mining_ratio,
                           int64_t{param_.minimum_negative_samples}});
    if (!param_.Mines()) return;
    using Order = typename Workspace<Device, C>::Order;
    const Candidates<T> candidates{scene, rows, threshold(param_.negative_mining_thresh)};
    Order order(device, shape.rows(), scratch + at.order);
    order.SortBy(candidates, 8 * static_cast<int>(sizeof(C)));
    if (shape.images > 1) {
      order.SortBy(ImageKey<KeyOf<C>>{shape.anchors},
                   static_cast<int>(std::bit_width(static_cast<uint64_t>(shape.images - 1))));
    }
    Launch(device, shape.rows(), TakeNegative<T>{candidates, order.positions()});
  }

  const MultiBoxTargetParam param_;
};

template <typename Device>
Expected<Plan, Refusal> MakePlan(const OperatorProperty& base, const PlanRequest& request,
                                 Backend&) {
  using P = MultiBoxTargetProperty;
  const MultiBoxTargetParam& param = static_cast<const P&>(base).param();
  const Geometry shape(request.in[P::kLabel].shape, request.in[P::kClassPred].shape);
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (shape.rows() > kMost || shape.images * shape.objects > kMost)
    return Refusal{format("it takes at most {} anchors and objects", kMost)};
  const int64_t bytes = request.in[0].type == DType::kFloat64
                            ? Workspace<Device, double>(shape, param).bytes
                            : Workspace<Device, float>(shape, param).bytes;
  return ForwardPlan<P, MultiBoxTarget<Device>>(base, request, bytes);
}

}  // namespace mxtrain::multibox_target

MXTRAIN_KERNELS(multibox_target, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(
      LastKernel<Device>("_contrib_MultiBoxTarget", multibox_target::MakePlan<Device>));
}
