// SPDX-License-Identifier: Apache-2.0
#pragma once
// pick and batch_take gather single elements, each from another column.
#include "mxtrain/operator/axes.h"
#include "mxtrain/operator/gather_op.h"
#include "mxtrain/operators/pick/pick.h"

namespace mxtrain {

struct PickSetup : GatherSetup {
  static constexpr const char* kName = "pick";
  static constexpr bool kRepeats = false;

  explicit PickSetup(const PickParam& param) : axis(param.axis), mode(param.mode) {}
  AxisSplit SplitOf(const TShape& data) const { return {data, CheckAxis(axis, data, kName)}; }
  RowGrid GridOf(const TShape& data, const TShape&) const {
    const AxisSplit split = SplitOf(data);
    return {split.outer, split.inner, 1};
  }
  PickPlaces PlacesOf(const TShape& data, const TBlob& index) const {
    const AxisSplit split = SplitOf(data);
    return {{NumberReader(index), split.length, mode}, split.inner, 1};
  }

  int axis, mode;
};

struct BatchTakeSetup : PickSetup {
  static constexpr const char* kName = "batch_take";
  explicit BatchTakeSetup(const NoParam&) : PickSetup(AxisOne()) {}
  static PickParam AxisOne() {
    PickParam param{};
    param.axis = 1;
    param.mode = kIndexClip;
    return param;
  }
};

}  // namespace mxtrain

MXTRAIN_KERNELS(pick, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(GatherKernel<PickSetup, PickProperty, Device>());
  registry.AddKernel(GatherKernel<BatchTakeSetup, BatchTakeProperty, Device>());
}
