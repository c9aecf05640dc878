// SPDX-License-Identifier: Apache-2.0
#pragma once
// take gathers rows: what follows the axis.
#include "mxtrain/operator/axes.h"
#include "mxtrain/operator/gather_op.h"
#include "mxtrain/operators/take/take.h"

namespace mxtrain {

struct TakeSetup : GatherSetup {
  static constexpr const char* kName = "take";
  static constexpr bool kRepeats = true;

  explicit TakeSetup(const TakeParam& given) : param(given) {}
  AxisSplit SplitOf(const TShape& a) const { return {a, CheckAxis(param.axis, a, kName)}; }
  RowGrid GridOf(const TShape& a, const TShape& indices) const {
    const AxisSplit split = SplitOf(a);
    return {split.outer, indices.Size(), split.inner};
  }
  int64_t RowsOf(const TShape& a, const TShape&) const { return SplitOf(a).length; }
  TakePlaces PlacesOf(const TShape& a, const TBlob& indices) const {
    return {{NumberReader(indices), SplitOf(a).length, param.mode}};
  }
  template <typename Device>
  void Check(const Device& device, const TShape& a, const TBlob& indices) const {
    if (raises())
      CheckIndices(device, NumberReader(indices), 0, indices.Size(), 0, SplitOf(a).length, kName);
  }
  bool raises() const { return param.mode == kIndexRaise; }

  TakeParam param;
};

}  // namespace mxtrain

MXTRAIN_KERNELS(take, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(GatherKernel<TakeSetup, TakeProperty, Device>());
}
