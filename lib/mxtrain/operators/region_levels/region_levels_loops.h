// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <memory>

#include "mxtrain/operator/boxes.h"
#include "mxtrain/operator/operator.h"
#include "mxtrain/operators/region_levels/region_levels.h"

namespace mxtrain::region_levels {

template <typename T>
struct DivideRegion {
  using C = ComputeOf<T>;
  static constexpr int kMost = RegionLevelsProperty::kMostLevels;
  int levels;
  C least_area[kMost];  // of the regions of each level but the first
  const T* rois;
  OpReqType req[kMost];
  T* out[kMost];

  MXTRAIN_HD void operator()(int64_t i) const {
    const T* roi = rois + i * 5;
    const C area = ReadBox(roi + 1, kBoxCorner).Area();
    int own = 0;
    while (own + 1 < levels && area >= least_area[own + 1]) ++own;
    for (int l = 0; l < levels; ++l) {
      if (req[l] == OpReqType::kNullOp) continue;
      const bool here = l == own && static_cast<C>(roi[0]) >= C(0);
      for (int k = 0; k < 5; ++k)
        Assign(req[l], out[l], i * 5 + k, here ? static_cast<C>(roi[k]) : C(-1));
    }
  }
};

template <typename Device>
class RegionLevels final : public Operator {
 public:
  explicit RegionLevels(const RegionLevelsParam& param) : param_(param) {}

  void Forward(const ForwardArgs& args) override {
    const TBlob& rois = args.in_data[0];
    SwitchFloating(rois.type, "RegionLevels", [&](auto tag) {
      using T = typename decltype(tag)::type;
      DivideRegion<T> body{static_cast<int>(args.out_data.size()), {}, rois.dptr<T>(), {}, {}};
      for (int l = 0; l < body.levels; ++l) {
        const double side =
            static_cast<double>(param_.usual_size) *
            std::exp2(param_.first_level + l - static_cast<double>(param_.usual_level) - 1e-6);
        body.least_area[l] = static_cast<ComputeOf<T>>(side * side);
        body.req[l] = args.req[static_cast<size_t>(l)];
        body.out[l] = static_cast<T*>(args.out_data[static_cast<size_t>(l)].data);
      }
      Launch(Device{args.ctx.run_ctx}, rois.shape[0], body);
    });
  }

 private:
  const RegionLevelsParam param_;
};

}  // namespace mxtrain::region_levels

MXTRAIN_KERNELS(region_levels, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(
      ForwardKernel<RegionLevelsProperty, region_levels::RegionLevels<Device>, Device>(
          "RegionLevels"));
}
