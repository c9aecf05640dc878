// SPDX-License-Identifier: Apache-2.0
#pragma once
// one_hot, a vector at a time.
#include <memory>

#include "mxtrain/operator/gather.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/one_hot/one_hot.h"

namespace mxtrain {

template <typename T>
struct OneHotRow {
  using V = ComputeOf<T>;
  NumberReader indices;
  int64_t depth;
  V on, off;
  T* out;
  OpReqType req;

  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t row) const {
    const int64_t index = indices.Index(row);
    const bool inside = index >= 0 && index < depth;
    const int64_t chosen = inside ? index : depth;
    T* vector = out + row * depth;
    Fill(team, vector, 0, chosen, off);
    if (inside) {
      Fill(team, vector, chosen, chosen + 1, on);
      Fill(team, vector, chosen + 1, depth, off);
    }
  }
  template <typename Team>
  MXTRAIN_HD void Fill(const Team& team, T* vector, int64_t begin, int64_t end, V value) const {
    for (int64_t k = begin + team.rank(); k < end; k += team.size()) Assign(req, vector, k, value);
  }
};

template <typename Device>
class OneHot final : public Operator {
 public:
  explicit OneHot(const OneHotParam& param) : param_(param) {}

  void Forward(const ForwardArgs& args) override {
    if (args.req[0] == OpReqType::kNullOp) return;
    const TBlob& out = args.out_data[0];
    SwitchType(out.type, "one_hot", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using V = ComputeOf<T>;
      ForRows(
          Device{args.ctx.run_ctx}, args.in_data[0].Size(), param_.depth,
          OneHotRow<T>{NumberReader(args.in_data[0]), param_.depth, static_cast<V>(param_.on_value),
                       static_cast<V>(param_.off_value), out.dptr<T>(), args.req[0]});
    });
  }
  void Backward(const BackwardArgs&) override {}  // no argument has a gradient

 private:
  OneHotParam param_;
};

}  // namespace mxtrain

MXTRAIN_KERNELS(one_hot, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(
      ReferenceKernel<OneHotProperty, OneHot<Device>, Device>("one_hot", Takes::kEveryType));
}
