// SPDX-License-Identifier: Apache-2.0
#pragma once
// The kernels of argmax, argmin and argmax_channel: the best element of every slice of a column,
// then of the slices.
#include "mxtrain/operator/identity.h"
#include "mxtrain/operator/simple_op.h"
#include "mxtrain/operators/argmax/argmax_search.h"

namespace mxtrain::argmax {

template <typename F, typename T>
struct SearchSlice {
  Results<T> results;
  const T* x;
  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t task) const {
    const Columns& columns = results.columns;
    const AxisSplit& split = columns.split;
    const int64_t all = split.outer * split.inner, column = task % all, slice = task / all,
                  end = columns.slices.Begin(slice + 1);
    const T* first = x + column / split.inner * split.length * split.inner + column % split.inner;
    Found best;
    for (int64_t k = columns.slices.Begin(slice) + team.rank(); k < end; k += team.size())
      best = BetterOf<F>()(best, Found{static_cast<double>(first[k * split.inner]), k});
    best = team.Fold(best, BetterOf<F>{});
    if (team.rank() == 0) results.Put(column, slice, best);
  }
};
template <typename F, typename T>
struct JoinSlices {
  Results<T> results;
  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t column) const {
    const int64_t count = results.columns.slices.count;
    Found best;
    for (int64_t s = team.rank(); s < count; s += team.size())
      best = BetterOf<F>()(best, results.parts[column * count + s]);
    best = team.Fold(best, BetterOf<F>{});
    if (team.rank() == 0) results.PutColumn(column, best);
  }
};

template <typename F, typename Device>
void Search(const Device& device, const TBlob& src, const ArgParam& param, const EnvArguments& env,
            const TBlob& ret, OpReqType req) {
  if (req == OpReqType::kNullOp || src.Size() == 0) return;
  constexpr int64_t kSideBySide = 32;  // adjacent columns that are worth a thread each
  const Columns columns(src.shape, param, F::kName);
  Found* parts = nullptr;
  if (!columns.whole())
    parts = env.resource[0].GetSpace<Found>(columns.count() * columns.slices.count);
  SwitchFloating(src.type, F::kName, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Results<T> results{columns, parts, ret.dptr<T>(), req};
    const T* x = src.dptr<T>();
    if constexpr (std::is_same_v<Device, OnCpu>) {
      SearchOnCpu<F>(x, results);
    } else {
      const SearchSlice<F, T> search{results, x};
      const int64_t tasks = columns.count() * columns.slices.count;
      if (columns.split.inner >= kSideBySide) {
        ForColumns(device, tasks, columns.slices.longest(), search);
      } else {
        ForRows(device, tasks, columns.slices.longest(), search);
      }
    }
    if (!columns.whole())
      ForRows(device, columns.count(), columns.slices.count, JoinSlices<F, T>{results});
  });
}

template <typename Device, typename F>
void Forward(const TBlob& src, const EnvArguments& env, TBlob* ret, OpReqType req, RunContext ctx) {
  Search<F>(Device{ctx}, src, env.As<ArgParam>(), env, *ret, req);
}
template <typename Device>
void ForwardChannel(const TBlob& src, const EnvArguments& env, TBlob* ret, OpReqType req,
                    RunContext ctx) {
  Search<Largest>(Device{ctx}, src, ChannelParam(), env, *ret, req);
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

}  // namespace mxtrain::argmax

MXTRAIN_KERNELS(argmax, Device, registry) {
  using namespace mxtrain::argmax;
  AddKernel<Device>(registry, "argmax", Forward<Device, Largest>);
  AddKernel<Device>(registry, "argmin", Forward<Device, Smallest>);
  AddKernel<Device>(registry, "argmax_channel", ForwardChannel<Device>);
}
