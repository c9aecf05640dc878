// SPDX-License-Identifier: Apache-2.0
#pragma once
// topk, sort and argsort in two steps: the ranks, indices of the first k elements of every column;
// then values, indices and masks by them. On the CPU a thread orders a column by comparisons; a few
// long columns, and all columns on a GPU, are ordered together by a radix sort.
#include <bit>
#include <limits>
#include <memory>

#include "mxtrain/operator/axes.h"
#include "mxtrain/operator/gather.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/topk/topk.h"
#include "mxtrain/operators/topk/topk_order.h"

namespace mxtrain::topk {

// The columns of an array, and how many elements of each are wanted.
struct Columns {
  AxisSplit split;
  int64_t k = 0;

  Columns(const Ordering& ordering, const TShape& shape) {
    if (ordering.axis) {
      split = AxisSplit(shape, CheckAxis(*ordering.axis, shape, "topk"));
    } else {
      split.length = shape.Size();
    }
    k = ordering.Count(split.length);
  }
  MXTRAIN_HD int64_t Place(int64_t column, int64_t index) const {
    return (column / split.inner * split.length + index) * split.inner + column % split.inner;
  }
  int64_t elements() const { return split.columns() * split.length; }
  // Ranks are int32_t [outer, k, inner].
  int64_t ranks() const { return split.columns() * k; }
  int64_t RankBytes() const { return RoundUp(ranks() * static_cast<int64_t>(sizeof(int32_t)), 64); }
  RowGrid Grid() const { return {split.outer * k, split.inner, 1}; }
  PickPlaces Places(const int32_t* ranks) const {
    return {{NumberReader(ranks, DType::kInt32), split.length, kIndexClip}, split.inner, k};
  }
};

// Elements are numbered column by column.
template <typename T>
struct ElementKey {
  Columns columns;
  const T* x;
  bool ascend;
  MXTRAIN_HD KeyOf<T> operator()(int64_t e) const {
    const int64_t length = columns.split.length;
    return MakeKey(x[columns.Place(e / length, e % length)], ascend);
  }
};
template <typename K>
struct ColumnKey {
  int64_t length;
  MXTRAIN_HD K operator()(int64_t e) const { return static_cast<K>(e / length); }
};
struct RankOfOrder {
  Columns columns;
  const uint32_t* order;
  int32_t* ranks;
  MXTRAIN_HD void operator()(int64_t i) const {
    const int64_t inner = columns.split.inner, row = i / inner,
                  column = row / columns.k * inner + i % inner,
                  first = column * columns.split.length;
    ranks[i] = static_cast<int32_t>(static_cast<int64_t>(order[first + row % columns.k]) - first);
  }
};

template <typename T, typename Device>
void RankTogether(const Device& device, const Columns& columns, bool ascend, const T* x,
                  int32_t* ranks, void* scratch) {
  using K = KeyOf<T>;
  PositionOrder<K, Device> order(device, columns.elements(), scratch);
  order.SortBy(ElementKey<T>{columns, x, ascend}, 8 * static_cast<int>(sizeof(K)));
  if (columns.split.columns() > 1) {
    order.SortBy(
        ColumnKey<K>{columns.split.length},
        static_cast<int>(std::bit_width(static_cast<uint64_t>(columns.split.columns() - 1))));
  }
  Launch(device, columns.ranks(), RankOfOrder{columns, order.positions(), ranks});
}

template <typename T>
void RankColumns(const Columns& columns, bool ascend, const T* x, int32_t* ranks, void* scratch) {
  using E = Entry<KeyOf<T>>;
  constexpr int64_t kWork = 4;  // cost of ordering an element relative to an addition
  const int64_t length = columns.split.length, inner = columns.split.inner, k = columns.k,
                room = RoomOf(length, k);
  const int64_t grain = std::max<int64_t>(1, kParallelGrain / (kWork * length));
  ParallelForPieces(columns.split.columns(), grain, [&](int64_t begin, int64_t end, int piece) {
    E* entries = static_cast<E*>(scratch) + piece * room;
    for (int64_t column = begin; column < end; ++column) {
      const T* first = x + columns.Place(column, 0);
      FirstOfColumn([&](int64_t i) { return E(MakeKey(first[i * inner], ascend), i); }, length, k,
                    entries);
      int32_t* rank = ranks + column / inner * k * inner + column % inner;
      for (int64_t j = 0; j < k; ++j) rank[j * inner] = entries[j].Index();
    }
  });
}

// The gradient on the CPU: what a column's elements were read into goes back to them. Nothing else
// writes there.
template <typename T>
void GiveBack(const Columns& columns, const int32_t* ranks, const T* head, OpReqType req, T* grad) {
  const int64_t length = columns.split.length, inner = columns.split.inner, k = columns.k;
  ParallelFor(columns.split.columns(), kParallelGrain / std::max<int64_t>(length, 1) + 1,
              [&](int64_t begin, int64_t end) {
                for (int64_t column = begin; column < end; ++column) {
                  T* first = grad + columns.Place(column, 0);
                  if (req != OpReqType::kAddTo && k < length) {
                    for (int64_t i = 0; i < length; ++i) first[i * inner] = T(0);
                  }
                  const int64_t at = column / inner * k * inner + column % inner;
                  for (int64_t j = 0; j < k; ++j) {
                    const int64_t rank = std::clamp<int64_t>(ranks[at + j * inner], 0, length - 1);
                    Assign(req, first, rank * inner,
                           static_cast<ComputeOf<T>>(head[at + j * inner]));
                  }
                }
              });
}

template <typename T>
struct MarkRank {
  PickPlaces places;
  T* mask;
  OpReqType req;
  MXTRAIN_HD void operator()(int64_t i) const {
    Assign(req, mask, places(i / places.inner, i % places.inner), static_cast<ComputeOf<T>>(1));
  }
};

template <typename Device>
class OrderElements final : public Operator {
 public:
  // together: by one radix sort.
  OrderElements(const Ordering& ordering, bool together, const char* who)
      : ordering_(ordering), together_(together), who_(who) {}

  void Forward(const ForwardArgs& args) override {
    const Device device{args.ctx.run_ctx};
    const TBlob& data = args.in_data[0];
    const Columns columns(ordering_, data.shape);
    char* scratch = args.ctx.workspace.dptr<char>();
    int32_t* ranks = reinterpret_cast<int32_t*>(scratch);
    if (args.ctx.saved.empty()) {
      scratch += columns.RankBytes();
    } else {
      ranks = args.ctx.saved[0].dptr<int32_t>();
    }
    if (columns.ranks() > 0) Rank(device, data, columns, ranks, scratch);

    const PickPlaces places = columns.Places(ranks);
    if (const int i = ordering_.values; i >= 0) {
      const auto at = static_cast<size_t>(i);
      GatherRows(device, columns.Grid(), places, data, args.req[at], args.out_data[at], who_);
    }
    if (const int i = ordering_.indices; i >= 0) {
      const TBlob& out = args.out_data[static_cast<size_t>(i)];
      SwitchType(out.type, who_, [&](auto tag) {
        using D = typename decltype(tag)::type;
        MapOn<D>(device, out, args.req[static_cast<size_t>(i)],
                 ElementAt<ComputeOf<D>, int32_t>{ranks});
      });
    }
    if (ordering_.mask >= 0 && args.req[0] != OpReqType::kNullOp) {
      ZeroBlob(device, args.req[0], args.out_data[0]);
      SwitchType(data.type, who_, [&](auto tag) {
        using T = typename decltype(tag)::type;
        Launch(device, columns.ranks(),
               MarkRank<T>{places, args.out_data[0].dptr<T>(), args.req[0]});
      });
    }
  }

  void Backward(const BackwardArgs& args) override {
    const Device device{args.ctx.run_ctx};
    const TBlob& grad = args.in_grad[0];
    if (ordering_.values < 0) return ZeroBlob(device, args.req[0], grad);
    if (args.req[0] == OpReqType::kNullOp) return;
    const Columns columns(ordering_, grad.shape);
    if constexpr (Device::kType == DeviceType::kCPU) {
      return SwitchType(grad.type, who_, [&](auto tag) {
        using T = typename decltype(tag)::type;
        GiveBack(columns, args.ctx.saved[0].dptr<int32_t>(), args.out_grad[0].dptr<T>(),
                 args.req[0], grad.dptr<T>());
      });
    }
    ZeroBlob(device, args.req[0], grad);
    ScatterRows(device, columns.Grid(), columns.Places(args.ctx.saved[0].dptr<int32_t>()),
                args.out_grad[0], args.req[0], grad, who_);
  }

 private:
  void Rank(const Device& device, const TBlob& data, const Columns& columns, int32_t* ranks,
            void* scratch) const {
    SwitchType(data.type, who_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* x = data.dptr<T>();
      if constexpr (Device::kType == DeviceType::kCPU) {
        if (!together_) return RankColumns(columns, ordering_.ascend, x, ranks, scratch);
      }
      RankTogether(device, columns, ordering_.ascend, x, ranks, scratch);
    });
  }

  Ordering ordering_;
  bool together_;
  const char* who_;
};

// Whether columns are too few for the threads and long enough for a radix sort by all of them.
inline bool FewAndLong(const Columns& columns, int threads) {
  constexpr int64_t kLong = 1 << 16;
  return columns.split.length >= kLong && columns.k > kFew &&
         2 * columns.split.columns() <= threads;
}

template <typename Property, typename Device>
KernelEntry Kernel(const char* who) {
  const auto plan_order = [who](const OperatorProperty& base, const PlanRequest& request,
                                Backend&) -> Expected<Plan, Refusal> {
    const Ordering ordering = static_cast<const Property&>(base).ordering();
    const Columns columns(ordering, request.in[0].shape);
    const int threads = std::max(request.threads, 1);
    const bool wide = SizeOf(request.in[0].type) == 8;
    const int64_t most = PositionOrder<uint32_t, Device>::kMostPositions;
    const bool together = Device::kType == DeviceType::kGPU ||
                          (FewAndLong(columns, threads) && columns.elements() <= most);
    if (columns.split.length > std::numeric_limits<int32_t>::max())
      return Refusal{format("it orders at most {} elements", std::numeric_limits<int32_t>::max())};
    if (together && columns.elements() > most)
      return Refusal{format("it orders at most {} elements on a GPU", most)};

    Plan plan = PlainPlan(base, request);
    int64_t ranks = columns.RankBytes();
    if (request.needs_backward && ordering.values >= 0) {
      plan.saved = {ranks};
      ranks = 0;
    }
    plan.forward_workspace = ranks;
    if (together) {
      plan.forward_workspace += wide ? PositionOrder<uint64_t, Device>::Bytes(columns.elements())
                                     : PositionOrder<uint32_t, Device>::Bytes(columns.elements());
    } else {
      plan.forward_workspace +=
          threads * RoomOf(columns.split.length, columns.k) *
          static_cast<int64_t>(wide ? sizeof(Entry<uint64_t>) : sizeof(Entry<uint32_t>));
    }
    plan.make = [ordering, together, who] {
      return std::make_unique<OrderElements<Device>>(ordering, together, who);
    };
    return plan;
  };
  return LastKernel<Device>(who, plan_order, Takes::kEveryType);
}

}  // namespace mxtrain::topk

MXTRAIN_KERNELS(topk, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(topk::Kernel<TopKProperty, Device>("topk"));
  registry.AddKernel(topk::Kernel<SortProperty, Device>("sort"));
  registry.AddKernel(topk::Kernel<ArgsortProperty, Device>("argsort"));
}
