// SPDX-License-Identifier: Apache-2.0
#pragma once
// The anchors of all images are ordered by score with one radix sort, then by image, as in box_nms.
#include <bit>
#include <limits>
#include <memory>

#include "mxtrain/operator/box_offsets.h"
#include "mxtrain/operator/gather_order.h"
#include "mxtrain/operator/order_key.h"
#include "mxtrain/operator/suppression.h"
#include "mxtrain/operators/multibox_detection/multibox_detection.h"

namespace mxtrain::multibox_detection {

struct Geometry {
  int64_t images = 0, classes = 0, anchors = 0;
  explicit Geometry(const TShape& scores)
      : images(scores[0]), classes(scores[1]), anchors(scores[2]) {}
  MXTRAIN_HD int64_t rows() const { return images * anchors; }
};

// What is found at row i, which is anchor i % anchors of image i / anchors.
template <typename C>
struct Found {
  C* score;
  C* label;  // -1: the anchor does not take part

  static int64_t Bytes(int64_t rows) { return 2 * rows * static_cast<int64_t>(sizeof(C)); }
  Found(void* scratch, int64_t rows) : score(static_cast<C*>(scratch)), label(score + rows) {}
  MXTRAIN_HD bool TakesPart(int64_t row) const { return label[row] >= C(0); }
};

template <typename T>
struct FindClass {
  using C = ComputeOf<T>;
  Geometry shape;
  const T* scores;
  C threshold;
  Found<C> found;

  MXTRAIN_HD void operator()(int64_t row) const {
    const T* x = scores + row / shape.anchors * shape.classes * shape.anchors + row % shape.anchors;
    C best = C(-1);
    int64_t label = 0;
    for (int64_t k = 1; k < shape.classes; ++k) {
      const C score = static_cast<C>(x[k * shape.anchors]);
      if (score > best) best = score, label = k;
    }
    found.score[row] = best;
    found.label[row] = best < threshold ? C(-1) : static_cast<C>(label - 1);
  }
};

template <typename T>
struct Decoder {
  using C = ComputeOf<T>;
  int64_t count;  // of anchors
  const T *offsets, *anchors;
  BoxNumbers<C> variances;
  bool clip;

  MXTRAIN_HD C Within(C at) const { return !clip ? at : at < C(0) ? C(0) : at > C(1) ? C(1) : at; }
  MXTRAIN_HD Corners<C> operator()(int64_t row) const {
    BoxNumbers<C> scaled{};
    for (int k = 0; k < 4; ++k) scaled.at[k] = static_cast<C>(offsets[row * 4 + k]) * variances[k];
    const Corners<C> box = BoxAt(scaled, ReadCentered(anchors + row % count * 4, kBoxCorner));
    return {Within(box.left), Within(box.top), Within(box.right), Within(box.bottom)};
  }
};

// The best first, or all in their order; rows that do not take part are last.
template <typename C>
struct ScoreKey {
  Found<C> found;
  MXTRAIN_HD KeyOf<C> operator()(int64_t row) const {
    return found.TakesPart(row) ? MakeKey(found.score[row], /*ascend=*/false) : ~KeyOf<C>{0};
  }
};
template <typename C>
struct PartKey {
  Found<C> found;
  MXTRAIN_HD KeyOf<C> operator()(int64_t row) const { return found.TakesPart(row) ? 0 : 1; }
};
template <typename K>
struct ImageKey {
  int64_t anchors;
  MXTRAIN_HD K operator()(int64_t row) const { return static_cast<K>(row / anchors); }
};

template <typename T>
struct TakeBox {
  using C = ComputeOf<T>;
  Found<C> found;
  Decoder<T> decode;
  bool separate;  // only boxes of one class suppress each other
  const uint32_t* order;
  int64_t most;
  OrderedBoxes<C> to;
  MXTRAIN_HD void operator()(int64_t i) const {
    const auto row = static_cast<int64_t>(order[i]);
    to.Put(i, decode(row), separate ? found.label[row] : C(0),
           found.TakesPart(row) && i % decode.count < most);
  }
};

// Row i of the output.
template <typename T>
struct WriteRow {
  using C = ComputeOf<T>;
  Found<C> found;
  Decoder<T> decode;
  const uint32_t* order;  // of the first `most` rows of each image
  const uint32_t* rest;   // of those behind
  const int32_t* lives;   // null: every box does
  int64_t most;
  OpReqType req;
  T* out;

  MXTRAIN_HD void operator()(int64_t i) const {
    constexpr int64_t kColumns = MultiBoxDetectionProperty::kColumns;
    const auto row = static_cast<int64_t>((i % decode.count < most ? order : rest)[i]);
    C values[kColumns] = {C(-1), C(-1), C(-1), C(-1), C(-1), C(-1)};
    if (found.TakesPart(row)) {
      const Corners<C> box = decode(row);
      if (!lives || lives[i] != 0) values[0] = found.label[row];
      values[1] = found.score[row];
      values[2] = box.left, values[3] = box.top, values[4] = box.right, values[5] = box.bottom;
    }
    for (int64_t k = 0; k < kColumns; ++k) Assign(req, out, i * kColumns + k, values[k]);
  }
};

// Where things are in the workspace.
template <typename Device, typename C>
struct Workspace {
  using Order = PositionOrder<KeyOf<C>, Device>;
  int64_t order, rest, boxes, bytes;

  Workspace(const Geometry& shape, const MultiBoxDetectionParam& param) {
    const auto aligned = [](int64_t size) { return RoundUp(size, 64); };
    const int64_t rows = shape.rows(), of_order = aligned(Order::Bytes(rows));
    order = aligned(Found<C>::Bytes(rows));
    rest = order + of_order;
    boxes = rest + (param.Most(shape.anchors) < shape.anchors ? of_order : 0);
    bytes = boxes + (param.Suppresses() ? OrderedBoxes<C>::Bytes(rows) : 0);
  }
};

template <typename Device>
class MultiBoxDetection final : public Operator {
 public:
  explicit MultiBoxDetection(const MultiBoxDetectionParam& param) : param_(param) {}

  void Forward(const ForwardArgs& args) override {
    using P = MultiBoxDetectionProperty;
    const TBlob& scores = args.in_data[P::kClassProb];
    const Geometry shape(scores.shape);
    if (args.req[0] == OpReqType::kNullOp || shape.rows() == 0) return;
    SwitchFloating(scores.type, "MultiBoxDetection", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using C = ComputeOf<T>;
      const Device device{args.ctx.run_ctx};
      char* const scratch = args.ctx.workspace.template dptr<char>();
      const Found<C> found(scratch, shape.rows());
      Launch(device, shape.rows(),
             FindClass<T>{shape, scores.dptr<T>(), static_cast<C>(param_.threshold), found});
      const Decoder<T> decoder{shape.anchors, args.in_data[P::kOffsets].template dptr<T>(),
                               args.in_data[P::kAnchor].template dptr<T>(),
                               VariancesOf<C>(param_.variances), param_.clip};
      Answer(device, shape, found, decoder, scratch, args.req[0],
             args.out_data[0].template dptr<T>());
    });
  }

 private:
  template <typename T, typename C>
  void Answer(const Device& device, const Geometry& shape, const Found<C>& found,
              const Decoder<T>& decoder, char* scratch, OpReqType req, T* out) const {
    const Workspace<Device, C> at(shape, param_);
    using Order = typename Workspace<Device, C>::Order;
    const int64_t most = param_.Most(shape.anchors);
    Order order(device, shape.rows(), scratch + at.order);
    if (!param_.Suppresses()) {
      SortWithinImages(shape, PartKey<C>{found}, 1, &order);
      return Launch(
          device, shape.rows(),
          WriteRow<T>{found, decoder, order.positions(), nullptr, nullptr, most, req, out});
    }
    SortWithinImages(shape, ScoreKey<C>{found}, 8 * static_cast<int>(sizeof(C)), &order);
    const uint32_t* rest = nullptr;
    if (most < shape.anchors) {
      Order by_anchor(device, shape.rows(), scratch + at.rest);
      SortWithinImages(shape, PartKey<C>{found}, 1, &by_anchor);
      rest = by_anchor.positions();
    }
    const OrderedBoxes<C> boxes(scratch + at.boxes, shape.rows());
    Launch(device, shape.rows(),
           TakeBox<T>{found, decoder, !param_.force_suppress, order.positions(), most, boxes});
    SuppressBoxes(device, shape.images,
                  SuppressImage<Suppresses::kFrom, C>{shape.anchors, boxes,
                                                      static_cast<C>(param_.nms_threshold),
                                                      order.positions(), nullptr});
    Launch(device, shape.rows(),
           WriteRow<T>{found, decoder, order.positions(), rest, boxes.lives, most, req, out});
  }
  template <typename Key, typename Order>
  static void SortWithinImages(const Geometry& shape, const Key& key, int bits, Order* order) {
    using K = std::decay_t<decltype(*order->keys())>;
    order->SortBy(key, bits);
    if (shape.images == 1) return;
    order->SortBy(ImageKey<K>{shape.anchors},
                  static_cast<int>(std::bit_width(static_cast<uint64_t>(shape.images - 1))));
  }

  const MultiBoxDetectionParam param_;
};

template <typename Device>
Expected<Plan, Refusal> MakePlan(const OperatorProperty& base, const PlanRequest& request,
                                 Backend&) {
  const MultiBoxDetectionParam& param = static_cast<const MultiBoxDetectionProperty&>(base).param();
  const Geometry shape(request.in[MultiBoxDetectionProperty::kClassProb].shape);
  if (shape.rows() > std::numeric_limits<int32_t>::max())
    return Refusal{format("it takes at most {} anchors", std::numeric_limits<int32_t>::max())};
  const int64_t bytes = request.in[0].type == DType::kFloat64
                            ? Workspace<Device, double>(shape, param).bytes
                            : Workspace<Device, float>(shape, param).bytes;
  return ForwardPlan<MultiBoxDetectionProperty, MultiBoxDetection<Device>>(base, request, bytes);
}

}  // namespace mxtrain::multibox_detection

MXTRAIN_KERNELS(multibox_detection, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(
      LastKernel<Device>("_contrib_MultiBoxDetection", multibox_detection::MakePlan<Device>));
}
