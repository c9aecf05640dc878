// SPDX-License-Identifier: Apache-2.0
#pragma once
// All rows of all images are ordered by score with one radix sort, then by image; what they
// suppress is operator/suppression.h.
#include <bit>
#include <limits>
#include <memory>

#include "mxtrain/operator/gather_order.h"
#include "mxtrain/operator/identity.h"
#include "mxtrain/operator/operator.h"
#include "mxtrain/operator/order_key.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operator/suppression.h"
#include "mxtrain/operators/box_nms/box_nms.h"

namespace mxtrain::box_nms {

struct Geometry {
  int64_t images = 1, boxes = 0, columns = 0;

  explicit Geometry(const TShape& data)
      : images(data.Product(0, data.ndim() - 2)),
        boxes(data[data.ndim() - 2]),
        columns(data[data.ndim() - 1]) {}
  MXTRAIN_HD int64_t rows() const { return images * boxes; }
};

// What MXNet's parameters say of a row of T.
template <typename T>
struct Reader {
  using C = ComputeOf<T>;
  Geometry shape;
  const T* data;
  C least_score;
  int box, score, id, background, format;
  bool separate;  // only boxes of one class suppress each other

  Reader(const Geometry& g, const T* x, const BoxNmsParam& p)
      : shape(g),
        data(x),
        least_score(static_cast<C>(p.valid_thresh)),
        box(p.coord_start),
        score(p.score_index),
        id(p.id_index),
        background(p.background_id),
        format(p.in_format),
        separate(p.id_index >= 0 && !p.force_suppress) {}

  MXTRAIN_HD const T* Row(int64_t row) const { return data + row * shape.columns; }
  MXTRAIN_HD bool TakesPart(int64_t row) const {
    const bool foreground =
        id < 0 || background < 0 || static_cast<C>(Row(row)[id]) != static_cast<C>(background);
    return foreground && static_cast<C>(Row(row)[score]) > least_score;
  }
  MXTRAIN_HD C Class(int64_t row) const { return separate ? static_cast<C>(Row(row)[id]) : C(0); }
};

// The best first; rows that do not take part are last.
template <typename T>
struct ScoreKey {
  Reader<T> reader;
  MXTRAIN_HD KeyOf<T> operator()(int64_t row) const {
    return reader.TakesPart(row) ? MakeKey(reader.Row(row)[reader.score], /*ascend=*/false)
                                 : ~KeyOf<T>{0};
  }
};
template <typename K>
struct ImageKey {
  int64_t boxes;
  MXTRAIN_HD K operator()(int64_t row) const { return static_cast<K>(row / boxes); }
};

template <typename T>
struct TakeBox {
  Reader<T> reader;
  const uint32_t* order;
  int64_t most;
  OrderedBoxes<ComputeOf<T>> to;
  MXTRAIN_HD void operator()(int64_t i) const {
    const auto row = static_cast<int64_t>(order[i]);
    to.Put(i, ReadBox(reader.Row(row) + reader.box, reader.format), reader.Class(row),
           reader.TakesPart(row) && i % reader.shape.boxes < most);
  }
};

// Element i of the output.
template <typename T>
struct KeptElement {
  using C = ComputeOf<T>;
  Geometry shape;
  const T* data;
  const int32_t* kept;
  int box, from, to;  // the column of the box, and its formats
  MXTRAIN_HD C operator()(int64_t i) const {
    const int64_t row = i / shape.columns, column = i % shape.columns;
    if (kept[row] < 0) return C(-1);
    const T* x = data + (row / shape.boxes * shape.boxes + kept[row]) * shape.columns;
    const int64_t k = column - box;
    if (from == to || k < 0 || k > 3) return static_cast<C>(x[column]);
    const C low = static_cast<C>(x[box + k % 2]), high = static_cast<C>(x[box + 2 + k % 2]);
    if (from == kBoxCorner) return k < 2 ? (low + high) / C(2) : high - low;
    return k < 2 ? low - high / C(2) : low + high / C(2);
  }
};

// Adds the gradient of element i of the output to where it came from: nothing else does.
template <typename T>
struct GiveBackElement {
  using C = ComputeOf<T>;
  Geometry shape;
  const T* head;
  const int32_t* kept;
  int box, from, to;
  OpReqType req;
  T* grad;
  MXTRAIN_HD void operator()(int64_t i) const {
    const int64_t row = i / shape.columns, column = i % shape.columns;
    if (kept[row] < 0) return;
    const T* h = head + row * shape.columns;
    const int64_t k = column - box;
    C value = static_cast<C>(h[column]);
    if (from != to && k >= 0 && k <= 3) {
      const C low = static_cast<C>(h[box + k % 2]), high = static_cast<C>(h[box + 2 + k % 2]);
      if (from == kBoxCorner) {
        value = k < 2 ? low / C(2) - high : low / C(2) + high;
      } else {
        value = k < 2 ? low + high : (high - low) / C(2);
      }
    }
    Assign(req, grad, (row / shape.boxes * shape.boxes + kept[row]) * shape.columns + column,
           value);
  }
};

inline int64_t KeptBytes(const Geometry& shape) {
  return RoundUp(shape.rows() * static_cast<int64_t>(sizeof(int32_t)), 64);
}

template <typename Device>
class BoxNms final : public Operator {
 public:
  explicit BoxNms(const BoxNmsParam& param) : param_(param) {}

  void Forward(const ForwardArgs& args) override {
    const Device device{args.ctx.run_ctx};
    const TBlob& data = args.in_data[0];
    const Geometry shape(data.shape);
    if (shape.rows() == 0) return;
    char* scratch = args.ctx.workspace.dptr<char>();
    int32_t* kept = reinterpret_cast<int32_t*>(scratch);
    if (args.ctx.saved.empty()) {
      scratch += KeptBytes(shape);
    } else {
      kept = args.ctx.saved[0].dptr<int32_t>();
    }
    SwitchFloating(data.type, "box_nms", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* x = data.dptr<T>();
      Keep(device, Reader<T>(shape, x, param_), scratch, kept);
      MapOn<T>(
          device, args.out_data[0], args.req[0],
          KeptElement<T>{shape, x, kept, param_.coord_start, param_.in_format, param_.out_format});
    });
  }

  void Backward(const BackwardArgs& args) override {
    const Device device{args.ctx.run_ctx};
    const TBlob& grad = args.in_grad[0];
    if (args.req[0] == OpReqType::kNullOp) return;
    ZeroBlob(device, args.req[0], grad);
    const Geometry shape(grad.shape);
    SwitchFloating(grad.type, "box_nms", [&](auto tag) {
      using T = typename decltype(tag)::type;
      Launch(device, grad.Size(),
             GiveBackElement<T>{shape, args.out_grad[0].dptr<T>(),
                                args.ctx.saved[0].dptr<int32_t>(), param_.coord_start,
                                param_.in_format, param_.out_format, args.req[0], grad.dptr<T>()});
    });
  }

 private:
  template <typename T>
  void Keep(const Device& device, const Reader<T>& reader, char* scratch, int32_t* kept) const {
    using K = KeyOf<T>;
    using C = ComputeOf<T>;
    const Geometry& shape = reader.shape;
    PositionOrder<K, Device> order(device, shape.rows(), scratch);
    order.SortBy(ScoreKey<T>{reader}, 8 * static_cast<int>(sizeof(K)));
    if (shape.images > 1) {
      order.SortBy(ImageKey<K>{shape.boxes},
                   static_cast<int>(std::bit_width(static_cast<uint64_t>(shape.images - 1))));
    }
    const OrderedBoxes<C> boxes(
        scratch + RoundUp(PositionOrder<K, Device>::Bytes(shape.rows()), 64), shape.rows());
    const int64_t most = param_.topk < 1 ? shape.boxes : param_.topk;
    Launch(device, shape.rows(), TakeBox<T>{reader, order.positions(), most, boxes});
    SuppressBoxes(
        device, shape.images,
        SuppressImage<Suppresses::kAbove, C>{
            shape.boxes, boxes, static_cast<C>(param_.overlap_thresh), order.positions(), kept});
  }

  const BoxNmsParam param_;
};

template <typename Device>
Expected<Plan, Refusal> MakePlan(const OperatorProperty& base, const PlanRequest& request,
                                 Backend&) {
  const Geometry shape(request.in[0].shape);
  if (shape.rows() > std::numeric_limits<int32_t>::max())
    return Refusal{format("it takes at most {} boxes", std::numeric_limits<int32_t>::max())};
  Plan plan = PlainPlan(base, request);
  const bool wide = request.in[0].type == DType::kFloat64;
  const int64_t order = wide ? PositionOrder<uint64_t, Device>::Bytes(shape.rows())
                             : PositionOrder<uint32_t, Device>::Bytes(shape.rows());
  plan.forward_workspace = RoundUp(order, 64) + (wide ? OrderedBoxes<double>::Bytes(shape.rows())
                                                      : OrderedBoxes<float>::Bytes(shape.rows()));
  if (request.needs_backward) {
    plan.saved = {KeptBytes(shape)};
  } else {
    plan.forward_workspace += KeptBytes(shape);
  }
  plan.make = [param = static_cast<const BoxNmsProperty&>(base).param()] {
    return std::make_unique<BoxNms<Device>>(param);
  };
  return plan;
}

}  // namespace mxtrain::box_nms

MXTRAIN_KERNELS(box_nms, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(LastKernel<Device>("_contrib_box_nms", box_nms::MakePlan<Device>));
}
