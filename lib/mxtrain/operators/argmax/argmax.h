// SPDX-License-Identifier: Apache-2.0
#pragma once
// argmax and argmin: the index along an axis of the largest or smallest element, the first of ties,
// in the type of the data. Without an axis the array counts as one row. argmax_channel: argmax
// along axis 1 of [N, K, ...]. The gradient is zero. Written once for both devices: Device is OnCpu
// or OnGpu.
#include <optional>

#include "mxtrain/operator/axes.h"
#include "mxtrain/operator/axis_pieces.h"
#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operator/identity.h"
#include "mxtrain/operator/rows.h"
#include "mxtrain/operator/simple_op.h"

namespace mxtrain::argmax {

struct ArgParam : Parameter<ArgParam> {
  std::optional<int> axis;
  bool keepdims = false;
  static void Declare(Fields<ArgParam>& f) {
    f.Add("axis", &ArgParam::axis)
        .Default(std::nullopt)
        .Help("axis to search, negative from the end; None: the whole array");
    f.Add("keepdims", &ArgParam::keepdims)
        .Default(false)
        .Help("the searched axis stays, with length 1");
  }
};

struct Largest {
  static constexpr const char* kName = "argmax";
  MXTRAIN_HD static bool Better(double x, double best) { return x > best; }
};
struct Smallest {
  static constexpr const char* kName = "argmin";
  MXTRAIN_HD static bool Better(double x, double best) { return x < best; }
};

inline ArgParam ChannelParam() {
  ArgParam param;
  param.axis = 1;
  return param;
}

// An element and its index. A NaN wins, so it is not overlooked.
struct Found {
  double value = 0;
  int64_t place = -1;  // none yet
};
template <typename F>
struct BetterOf {
  MXTRAIN_HD Found operator()(const Found& a, const Found& b) const {
    if (a.place < 0 || b.place < 0) return a.place < 0 ? b : a;
    const Found &first = a.place < b.place ? a : b, &second = a.place < b.place ? b : a;
    if (first.value != first.value) return first;
    return F::Better(second.value, first.value) || second.value != second.value ? second : first;
  }
};

template <typename F, typename T>
struct SearchRow {
  AxisView view;
  const T* x;
  T* y;
  OpReqType req;
  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t i) const {
    const T* first = x + i / view.inner * view.length * view.inner + i % view.inner;
    Found best;
    for (int64_t k = team.rank(); k < view.length; k += team.size()) {
      best = BetterOf<F>()(best, Found{static_cast<double>(first[k * view.inner]), k});
    }
    best = team.Fold(best, BetterOf<F>{});
    if (team.rank() == 0) Assign(req, y, i, static_cast<ComputeOf<T>>(best.place));
  }
};

template <typename F, typename Device>
void Search(const Device& device, const TBlob& src, const ArgParam& param, const TBlob& ret,
            OpReqType req) {
  AxisView view;
  if (param.axis) {
    view = AxisView(src.shape, CheckAxis(*param.axis, src.shape, F::kName));
  } else {
    view.outer = view.inner = 1;
    view.length = src.shape.Size();
  }
  if (req == OpReqType::kNullOp) return;
  SwitchFloating(src.type, F::kName, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const SearchRow<F, T> row{view, src.dptr<T>(), ret.dptr<T>(), req};
    if (view.inner > 1) return ForColumns(device, view.outer * view.inner, view.length, row);
    ForRows(device, view.outer, view.length, row);
  });
}

template <typename Device, typename F>
void Forward(const TBlob& src, const EnvArguments& env, TBlob* ret, OpReqType req, RunContext ctx) {
  Search<F>(Device{ctx}, src, env.As<ArgParam>(), *ret, req);
}
template <typename Device>
void ForwardChannel(const TBlob& src, const EnvArguments&, TBlob* ret, OpReqType req,
                    RunContext ctx) {
  Search<Largest>(Device{ctx}, src, ChannelParam(), *ret, req);
}
template <typename Device>
void ZeroGradient(const OutputGrad&, const EnvArguments&, TBlob* in_grad, OpReqType req,
                  RunContext ctx) {
  ZeroBlob(Device{ctx}, req, *in_grad);
}

template <typename Device>
void AddKernel(OperatorRegistry& registry, const char* name, UnaryFunction function) {
  SimpleOp(registry, name)
      .set_function(Device::kType, function, kNoInplace)
      .set_gradient(Device::kType, ZeroGradient<Device>, kNoInplace);
}
template <typename Device>
void AddKernels(OperatorRegistry& registry) {
  AddKernel<Device>(registry, "argmax", Forward<Device, Largest>);
  AddKernel<Device>(registry, "argmin", Forward<Device, Smallest>);
  AddKernel<Device>(registry, "argmax_channel", ForwardChannel<Device>);
}

}  // namespace mxtrain::argmax
