// SPDX-License-Identifier: Apache-2.0
#pragma once
// In steps: the anchors of all images are ordered by score with one radix sort, then by image and
// level; the first ones of each level are candidates, of which boxes are made; these are ordered by
// score and by image, and suppress each other within their level (operator/suppression.h).
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>

#include "mxtrain/operator/gather_order.h"
#include "mxtrain/operator/operator.h"
#include "mxtrain/operator/order_key.h"
#include "mxtrain/operator/suppression.h"
#include "mxtrain/operators/pyramid_proposals/pyramid_proposals.h"

namespace mxtrain::pyramid_proposals {

template <typename T>
struct ScoreKey {
  PyramidMaps<T> maps;
  MXTRAIN_HD KeyOf<T> operator()(int64_t row) const {
    return MakeKey(maps.RawScore(maps.PlaceOf(row)), /*ascend=*/false);
  }
};
// Image and level.
template <typename T>
struct GroupKey {
  PyramidMaps<T> maps;
  MXTRAIN_HD KeyOf<T> operator()(int64_t row) const {
    return static_cast<KeyOf<T>>(row / maps.anchors * maps.levels +
                                 maps.LevelOf(row % maps.anchors));
  }
};

// The best anchors of each level: candidate i % count of image i / count.
struct Candidates {
  int64_t first[kMostPyramidLevels] = {};  // of each level
  int64_t count = 0;

  template <typename T>
  Candidates(const PyramidMaps<T>& maps, int64_t most_of_level) {
    for (int l = 0; l < maps.levels; ++l) {
      first[l] = count;
      count += std::min(most_of_level, maps.CountOf(l));
    }
  }
};

// Boxes of the candidates, and the anchors that they are of.
template <typename T>
struct DecodeCandidate {
  using C = ComputeOf<T>;
  PyramidMaps<T> maps;
  Candidates candidates;
  C most_log_growth;
  const uint32_t* order;  // of all anchors
  uint32_t* row_of;       // [images, candidates]
  C* boxes;               // [images, candidates, 4]

  MXTRAIN_HD static C Within(C at, C length) {
    return at < C(0) ? C(0) : at > length ? length : at;
  }
  MXTRAIN_HD void operator()(int64_t i) const {
    const int64_t image = i / candidates.count, place = i % candidates.count;
    int l = maps.levels - 1;
    while (place < candidates.first[l]) --l;
    const uint32_t row =
        order[image * maps.anchors + maps.level[l].first + place - candidates.first[l]];
    const auto at = maps.PlaceOf(static_cast<int64_t>(row));
    BoxNumbers<C> offsets{};
    for (int k = 0; k < 4; ++k) {
      const C offset = maps.Offset(at, k);
      offsets.at[k] = k >= 2 && offset > most_log_growth ? most_log_growth : offset;
    }
    const Corners<C> box = BoxAt(offsets, maps.Anchor(at));
    const C width = static_cast<C>(maps.image_width), height = static_cast<C>(maps.image_height);
    row_of[i] = row;
    boxes[i * 4] = Within(box.left, width);
    boxes[i * 4 + 1] = Within(box.top, height);
    boxes[i * 4 + 2] = Within(box.right, width);
    boxes[i * 4 + 3] = Within(box.bottom, height);
  }
};

// What is known of candidates; those that are dropped are last.
template <typename T>
struct CandidateKey {
  using C = ComputeOf<T>;
  PyramidMaps<T> maps;
  const uint32_t* row_of;
  const C* boxes;
  C least_side;
  MXTRAIN_HD bool TakesPart(int64_t i) const {
    const C* box = boxes + i * 4;
    return box[2] - box[0] >= least_side && box[3] - box[1] >= least_side;  // false of NaN
  }
  MXTRAIN_HD KeyOf<T> operator()(int64_t i) const {
    if (!TakesPart(i)) return ~KeyOf<T>{0};
    return MakeKey(maps.RawScore(maps.PlaceOf(static_cast<int64_t>(row_of[i]))),
                   /*ascend=*/false);
  }
};
template <typename K>
struct ImageKey {
  int64_t rows;
  MXTRAIN_HD K operator()(int64_t i) const { return static_cast<K>(i / rows); }
};
template <typename T>
struct TakeCandidate {
  CandidateKey<T> candidates;
  const uint32_t* order;
  OrderedBoxes<ComputeOf<T>> to;
  MXTRAIN_HD void operator()(int64_t i) const {
    using C = ComputeOf<T>;
    const auto own = static_cast<int64_t>(order[i]);
    const C* box = candidates.boxes + own * 4;
    const PyramidMaps<T>& maps = candidates.maps;
    const int level = maps.LevelOf(static_cast<int64_t>(candidates.row_of[own]) % maps.anchors);
    to.Put(i, {box[0], box[1], box[2], box[3]}, static_cast<C>(level), candidates.TakesPart(own));
  }
};

// Row i of the output.
template <typename C>
struct WriteRegion {
  static constexpr int64_t kColumns = PyramidProposalsProperty::kColumns;
  int64_t candidates, count;  // of an image
  const int32_t* kept;
  const C* boxes;
  OpReqType req;
  C* out;
  MXTRAIN_HD void operator()(int64_t i) const {
    const int64_t image = i / count, place = i % count;
    const int32_t own = place < candidates ? kept[image * candidates + place] : -1;
    Assign(req, out, i * kColumns, own < 0 ? C(-1) : static_cast<C>(image));
    for (int k = 0; k < 4; ++k) {
      const C side = own < 0 ? C(-1) : boxes[(image * candidates + own) * 4 + k];
      Assign(req, out, i * kColumns + k + 1, side);
    }
  }
};

// Where things are in the workspace. K: type of the keys.
template <typename Device, typename C, typename K>
struct Workspace {
  using Order = PositionOrder<K, Device>;
  int64_t boxes, row_of, kept, ordered, order, bytes;

  Workspace(int64_t rows, int64_t candidates) {
    boxes = 0;
    row_of = RoundUp(candidates * 4 * static_cast<int64_t>(sizeof(C)), 64);
    kept = row_of + RoundUp(candidates * static_cast<int64_t>(sizeof(uint32_t)), 64);
    ordered = kept + RoundUp(candidates * static_cast<int64_t>(sizeof(int32_t)), 64);
    order = ordered + RoundUp(OrderedBoxes<C>::Bytes(candidates), 64);
    bytes = order + Order::Bytes(std::max(rows, candidates));
  }
};

template <typename Device>
class PyramidProposals final : public Operator {
 public:
  explicit PyramidProposals(const PyramidProposalsParam& param) : param_(param) {}

  void Forward(const ForwardArgs& args) override {
    if (args.req[0] == OpReqType::kNullOp || args.out_data[0].Size() == 0) return;
    SwitchFloating(args.in_data[0].type, "PyramidProposals", [&](auto tag) {
      using T = typename decltype(tag)::type;
      Propose<T>(Device{args.ctx.run_ctx}, PyramidMaps<T>(param_, args.in_data),
                 args.ctx.workspace.template dptr<char>(), args.req[0], args.out_data[0]);
    });
  }

 private:
  template <typename K, typename Key>
  static void SortWithin(PositionOrder<K, Device>* order, const Key& key, int64_t groups) {
    if (groups > 1)
      order->SortBy(key, static_cast<int>(std::bit_width(static_cast<uint64_t>(groups - 1))));
  }
  template <typename T>
  void Propose(const Device& device, const PyramidMaps<T>& maps, char* scratch, OpReqType req,
               const TBlob& out) const {
    using C = ComputeOf<T>;
    using K = KeyOf<T>;
    const Candidates candidates(maps, param_.candidates);
    const int64_t rows = maps.images * candidates.count;
    const Workspace<Device, C, K> at(maps.rows(), rows);
    auto* const boxes = reinterpret_cast<C*>(scratch + at.boxes);
    auto* const row_of = reinterpret_cast<uint32_t*>(scratch + at.row_of);
    auto* const kept = reinterpret_cast<int32_t*>(scratch + at.kept);
    {
      PositionOrder<K, Device> order(device, maps.rows(), scratch + at.order);
      order.SortBy(ScoreKey<T>{maps}, 8 * static_cast<int>(sizeof(K)));
      SortWithin(&order, GroupKey<T>{maps}, maps.images * maps.levels);
      Launch(device, rows,
             DecodeCandidate<T>{maps, candidates, static_cast<C>(std::log(kMostAnchorGrowth)),
                                order.positions(), row_of, boxes});
    }
    const CandidateKey<T> known{maps, row_of, boxes, static_cast<C>(param_.least_side)};
    PositionOrder<K, Device> order(device, rows, scratch + at.order);
    order.SortBy(known, 8 * static_cast<int>(sizeof(K)));
    SortWithin(&order, ImageKey<K>{candidates.count}, maps.images);
    const OrderedBoxes<C> ordered(scratch + at.ordered, rows);
    Launch(device, rows, TakeCandidate<T>{known, order.positions(), ordered});
    SuppressBoxes(
        device, maps.images,
        SuppressImage<Suppresses::kAbove, C>{
            candidates.count, ordered, static_cast<C>(param_.overlap), order.positions(), kept});
    Launch(device, maps.images * param_.count,
           WriteRegion<C>{candidates.count, int64_t{param_.count}, kept, boxes, req,
                          out.template dptr<C>()});
  }

  const PyramidProposalsParam param_;
};

template <typename Device>
Expected<Plan, Refusal> MakePlan(const OperatorProperty& base, const PlanRequest& request,
                                 Backend&) {
  const auto& param = static_cast<const PyramidProposalsProperty&>(base).param();
  std::vector<TBlob> shapes(request.in.size());  // without elements
  for (size_t i = 0; i < shapes.size(); ++i) shapes[i].shape = request.in[i].shape;
  const PyramidMaps<float> maps(param, shapes);
  const int64_t candidates = maps.images * Candidates(maps, param.candidates).count;
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (maps.rows() > kMost) return Refusal{format("it takes at most {} anchors", kMost)};
  const int64_t bytes = request.in[0].type == DType::kFloat64
                            ? Workspace<Device, double, uint64_t>(maps.rows(), candidates).bytes
                            : Workspace<Device, float, uint32_t>(maps.rows(), candidates).bytes;
  return ForwardPlan<PyramidProposalsProperty, PyramidProposals<Device>>(base, request, bytes);
}

}  // namespace mxtrain::pyramid_proposals

MXTRAIN_KERNELS(pyramid_proposals, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(LastKernel<Device>("PyramidProposals", pyramid_proposals::MakePlan<Device>));
}
