// SPDX-License-Identifier: Apache-2.0
#pragma once
// where and its gradient are one selection: x or y, either of which may be zeros (null).
#include <algorithm>
#include <memory>

#include "mxtrain/operator/gather.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/where/where.h"

namespace mxtrain::where {

template <typename T>
struct Selection {
  NumberReader condition;
  int64_t rows, length;  // one element of the condition for `length` elements
  const T *x, *y;
  T* out;  // may be x or y
  OpReqType req;

  MXTRAIN_HD T operator()(int64_t i) const {
    const T* from = condition.Number(i / length) != 0 ? x : y;
    return from ? from[i] : static_cast<T>(0);
  }
};

template <typename Device, typename T>
void Select(const Device& device, const TBlob& out, const Selection<T>& s) {
  MapOn<T>(device, out, s.req, s);
}

// mask[k] = condition[begin + k] is not zero.
using FillMask = void (*)(const void* condition, int64_t begin, int64_t count, uint8_t* mask);
template <typename C>
void FillMaskOf(const void* condition, int64_t begin, int64_t count, uint8_t* mask) {
  const C* from = static_cast<const C*>(condition) + begin;
  for (int64_t k = 0; k < count; ++k)
    mask[k] = static_cast<ComputeOf<C>>(from[k]) != static_cast<ComputeOf<C>>(0);
}
template <bool kAdd, typename T>
MXTRAIN_SIMD void SelectBlock(int64_t count, const uint8_t* mask, const T* x, const T* y, T* out) {
  using V = ComputeOf<T>;
#pragma GCC ivdep
  for (int64_t k = 0; k < count; ++k) {
    const V a = static_cast<V>(x[k]), b = static_cast<V>(y[k]), value = mask[k] ? a : b;
    out[k] = static_cast<T>(kAdd ? static_cast<V>(out[k]) + value : value);
  }
}

inline constexpr int64_t kBlock = 1024;

template <typename T>
void SelectElements(const Selection<T>& s) {
  FillMask fill = nullptr;
  SwitchType(s.condition.type, "where",
             [&](auto tag) { fill = FillMaskOf<typename decltype(tag)::type>; });
  SwitchReq(s.req, [&](auto accumulate) {
    ParallelFor(s.rows, kParallelGrain, [&](int64_t begin, int64_t end) {
      uint8_t mask[kBlock];
      T zeros[kBlock] = {};
      for (int64_t at = begin; at < end; at += kBlock) {
        const int64_t count = std::min(kBlock, end - at);
        fill(s.condition.data, at, count, mask);
        SelectBlock<accumulate()>(count, mask, s.x ? s.x + at : zeros, s.y ? s.y + at : zeros,
                                  s.out + at);
      }
    });
  });
}
template <typename T>
void SelectRows(const Selection<T>& s) {
  const int64_t grain = std::max<int64_t>(1, kParallelGrain / std::max<int64_t>(1, s.length));
  ParallelFor(s.rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T* from = s.condition.Number(row) != 0 ? s.x : s.y;
      T* to = s.out + row * s.length;
      if (from == s.out && s.req != OpReqType::kAddTo) continue;  // in place
      if (from) {
        detail::CopyRow(s.req, s.length, from + row * s.length, to);
      } else if (s.req != OpReqType::kAddTo) {
        std::fill_n(to, s.length, static_cast<T>(0));
      }
    }
  });
}
template <typename T>
void Select(const OnCpu&, const TBlob&, const Selection<T>& s) {
  if (s.req == OpReqType::kNullOp) return;
  if (s.length == 1) {
    SelectElements(s);
  } else {
    SelectRows(s);
  }
}

template <typename Device>
class Where final : public Operator {
 public:
  explicit Where(const NoParam&) {}
  void Forward(const ForwardArgs& args) override {
    Run(args.ctx, args.in_data[WhereProperty::kCondition], args.in_data[WhereProperty::kX].data,
        args.in_data[WhereProperty::kY].data, args.req[0], args.out_data[0]);
  }
  void Backward(const BackwardArgs& args) override {
    const TBlob& condition = args.in_data[WhereProperty::kCondition];
    void* head = args.out_grad[0].data;
    for (const size_t to : {WhereProperty::kY, WhereProperty::kX}) {
      const bool is_x = to == WhereProperty::kX;
      Run(args.ctx, condition, is_x ? head : nullptr, is_x ? nullptr : head, args.req[to],
          args.in_grad[to]);
    }
  }

 private:
  static void Run(const OpContext& ctx, const TBlob& condition, const void* x, const void* y,
                  OpReqType req, const TBlob& out) {
    if (req == OpReqType::kNullOp || out.Size() == 0) return;
    SwitchType(out.type, "where", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const int64_t rows = condition.Size();
      Select(Device{ctx.run_ctx}, out,
             Selection<T>{NumberReader(condition), rows, out.Size() / rows,
                          static_cast<const T*>(x), static_cast<const T*>(y), out.dptr<T>(), req});
    });
  }
};

}  // namespace mxtrain::where

MXTRAIN_KERNELS(where, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(
      ReferenceKernel<WhereProperty, where::Where<Device>, Device>("where", Takes::kEveryType));
}
