// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <memory>

#include "mxtrain/operator/anchors.h"
#include "mxtrain/operator/operator.h"
#include "mxtrain/operator/region_scores.h"
#include "mxtrain/operators/region_boxes/region_boxes.h"

namespace mxtrain::region_boxes {

// The rows of a region of an image, of all classes.
template <typename T>
struct WriteBoxes {
  using C = ComputeOf<T>;
  static constexpr int64_t kColumns = RegionBoxesProperty::kColumns;
  RegionScores<T> says;
  const C* rois;
  BoxNumbers<C> variances;
  C most_log_growth, least_side, width, height;
  OpReqType req;
  C* out;

  MXTRAIN_HD static C Within(C at, C length) {
    return at < C(0) ? C(0) : at > length ? length : at;
  }
  MXTRAIN_HD Corners<C> BoxOf(int64_t row, int64_t column) const {
    BoxNumbers<C> offsets{};
    for (int k = 0; k < 4; ++k) {
      const C offset = says.Offset(row, column, k) * variances[k];
      offsets.at[k] = k >= 2 && offset > most_log_growth ? most_log_growth : offset;
    }
    const Corners<C> box = BoxAt(offsets, ReadCentered(rois + row * 5 + 1, kBoxCorner));
    return {Within(box.left, width), Within(box.top, height), Within(box.right, width),
            Within(box.bottom, height)};
  }
  MXTRAIN_HD void operator()(int64_t row) const {
    const bool is_region = rois[row * 5] >= C(0);
    const C log_sum = is_region ? says.LogSum(row) : C(0);
    const int64_t classes = says.columns - 1,
                  first = row / says.regions * classes * says.regions + row % says.regions;
    for (int64_t k = 0; k < classes; ++k) {
      Corners<C> box{};
      if (is_region) box = BoxOf(row, k + 1);
      const bool is_box =
          is_region && box.right - box.left >= least_side && box.bottom - box.top >= least_side;
      const C score = is_box ? vector_math::Exp(says.Score(row, k + 1) - log_sum) : C(-1);
      const C columns[kColumns] = {static_cast<C>(k), score,     box.left,
                                   box.top,           box.right, box.bottom};
      for (int64_t j = 0; j < kColumns; ++j) {
        Assign(req, out, (first + k * says.regions) * kColumns + j, is_box ? columns[j] : C(-1));
      }
    }
  }
};

template <typename Device>
class RegionBoxes final : public Operator {
 public:
  explicit RegionBoxes(const RegionBoxesParam& param) : param_(param) {}

  void Forward(const ForwardArgs& args) override {
    using P = RegionBoxesProperty;
    const TBlob& out = args.out_data[0];
    if (args.req[0] == OpReqType::kNullOp || out.Size() == 0) return;
    const TShape& image = args.in_data[P::kData].shape;
    SwitchFloating(args.in_data[P::kScores].type, "RegionBoxes", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using C = ComputeOf<T>;
      const RegionScores<T> says(args.in_data[P::kScores], args.in_data[P::kOffsets]);
      Launch(Device{args.ctx.run_ctx}, says.rows(),
             WriteBoxes<T>{says, static_cast<const C*>(args.in_data[P::kRois].data),
                           VariancesOf<C>(param_.variances),
                           static_cast<C>(std::log(kMostAnchorGrowth)),
                           static_cast<C>(param_.least_side), static_cast<C>(image[3]),
                           static_cast<C>(image[2]), args.req[0], out.template dptr<C>()});
    });
  }

 private:
  const RegionBoxesParam param_;
};

}  // namespace mxtrain::region_boxes

MXTRAIN_KERNELS(region_boxes, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(
      ForwardKernel<RegionBoxesProperty, region_boxes::RegionBoxes<Device>, Device>("RegionBoxes"));
}
