// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <limits>
#include <memory>

#include "mxtrain/operator/balanced_sample.h"
#include "mxtrain/operator/matched_object.h"
#include "mxtrain/operator/operator.h"
#include "mxtrain/operators/region_targets/region_targets.h"

namespace mxtrain::region_targets {

// The regions of a batch: those of the argument, then the objects. Row i is region i % rows() of
// image i / rows().
template <typename T>
struct Regions {
  using C = ComputeOf<T>;
  int64_t images, count;  // of the argument
  const T* rois;
  LabelledObjects<T> objects;

  Regions(const TBlob& regions, const TBlob& label)
      : images(regions.shape[0]),
        count(regions.shape[1]),
        rois(static_cast<const T*>(regions.data)),
        objects(label, std::numeric_limits<int32_t>::max()) {}

  MXTRAIN_HD int64_t rows() const { return count + objects.most; }
  MXTRAIN_HD bool Get(int64_t i, Corners<C>* box) const {
    const int64_t image = i / rows(), row = i % rows();
    if (row < count) {
      const T* roi = rois + (image * count + row) * RegionTargetsProperty::kColumns;
      *box = ReadBox(roi + 1, kBoxCorner);
      return static_cast<C>(roi[0]) >= C(0) && box->Area() > C(0);
    }
    typename LabelledObjects<T>::Object object;
    if (!objects.Get(image, row - count, &object) || !object.learnt) return false;
    *box = object.box;
    return true;
  }
};

template <typename T>
struct FindRole {
  using C = ComputeOf<T>;
  Regions<T> regions;
  MatchRule<C> rule;
  int32_t* role;
  MXTRAIN_HD void operator()(int64_t i) const {
    Corners<C> box;
    const int64_t image = i / regions.rows();
    role[i] = regions.Get(i, &box) ? RoleOf(regions.objects, image, box,
                                            BestObjectOf(regions.objects, image, box), rule)
                                   : kNothingLearnt;
  }
};

// Row i of both outputs.
template <typename T>
struct WriteSample {
  using C = ComputeOf<T>;
  static constexpr int64_t kColumns = RegionTargetsProperty::kColumns;
  Regions<T> regions;
  const int32_t* role;
  const SampleCounts* counts;
  const uint32_t* order;
  int64_t samples;
  BoxNumbers<C> variances;
  OpReqType req[2];
  T* out[2];

  // The row of the region; -1: there is none.
  MXTRAIN_HD int64_t RowOf(int64_t i) const {
    const int64_t image = i / samples, place = i % samples;
    const SampleCounts& own = counts[image];
    if (place >= own.chosen_objects + own.chosen_background) return -1;
    const int64_t skipped = place < own.chosen_objects ? 0 : own.objects - own.chosen_objects;
    return static_cast<int64_t>(order[image * regions.rows() + place + skipped]);
  }
  MXTRAIN_HD void operator()(int64_t i) const {
    C region[kColumns] = {C(-1), C(-1), C(-1), C(-1), C(-1)}, target[kColumns] = {C(-1)};
    const int64_t row = RowOf(i);
    Corners<C> box;
    if (row >= 0 && regions.Get(row, &box)) {
      region[0] = static_cast<C>(i / samples);
      region[1] = box.left, region[2] = box.top, region[3] = box.right, region[4] = box.bottom;
      target[0] = C(0);
      typename LabelledObjects<T>::Object object;
      if (role[row] >= 0 && regions.objects.Get(i / samples, role[row], &object)) {
        target[0] = static_cast<C>(object.label + 1);
        const BoxNumbers<C> offsets = OffsetsOf(CenteredOf(object.box), CenteredOf(box));
        for (int k = 0; k < 4; ++k) target[k + 1] = offsets[k] / variances[k];
      }
    }
    for (int64_t k = 0; k < kColumns; ++k) {
      Put(RegionTargetsProperty::kRegions, i * kColumns + k, region[k]);
      Put(RegionTargetsProperty::kTargets, i * kColumns + k, target[k]);
    }
  }
  MXTRAIN_HD void Put(int output, int64_t at, C value) const {
    if (req[output] != OpReqType::kNullOp) Assign(req[output], out[output], at, value);
  }
};

inline int64_t RoleBytes(int64_t rows) {
  return RoundUp(rows * static_cast<int64_t>(sizeof(int32_t)), 64);
}

template <typename Device>
class RegionTargets final : public Operator {
 public:
  explicit RegionTargets(const RegionTargetsParam& param) : param_(param) {}

  void Forward(const ForwardArgs& args) override {
    using P = RegionTargetsProperty;
    const TBlob& rois = args.in_data[P::kRois];
    if (rois.shape[0] == 0) return;
    const Device device{args.ctx.run_ctx};
    SwitchFloating(rois.type, "RegionTargets", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using C = ComputeOf<T>;
      const Regions<T> regions(rois, args.in_data[P::kLabel]);
      const int64_t rows = regions.images * regions.rows();
      char* const scratch = args.ctx.workspace.template dptr<char>();
      auto* const role = reinterpret_cast<int32_t*>(scratch);
      Launch(device, rows,
             FindRole<T>{regions,
                         {static_cast<C>(param_.foreground), static_cast<C>(param_.background)},
                         role});
      const BalancedSample<Device> sample(
          device, role, regions.images, regions.rows(),
          {int64_t{param_.samples}, static_cast<double>(param_.object_share)},
          args.ctx.requested[0].Draws(), scratch + RoleBytes(rows));
      WriteSample<T> body{regions,
                          role,
                          sample.counts(),
                          sample.positions(),
                          int64_t{param_.samples},
                          VariancesOf<C>(param_.variances),
                          {},
                          {}};
      for (size_t i = 0; i < 2; ++i) {
        body.req[i] = args.req[i];
        body.out[i] = static_cast<T*>(args.out_data[i].data);
      }
      Launch(device, regions.images * param_.samples, body);
    });
  }

 private:
  const RegionTargetsParam param_;
};

template <typename Device>
Expected<Plan, Refusal> MakePlan(const OperatorProperty& base, const PlanRequest& request,
                                 Backend&) {
  using P = RegionTargetsProperty;
  const TShape &rois = request.in[P::kRois].shape, &label = request.in[P::kLabel].shape;
  const int64_t rows = rois[1] + label[1];
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (rois[0] * rows > kMost)
    return Refusal{format("it takes at most {} regions and objects", kMost)};
  return ForwardPlan<P, RegionTargets<Device>>(
      base, request, RoleBytes(rois[0] * rows) + BalancedSample<Device>::Bytes(rois[0], rows));
}

}  // namespace mxtrain::region_targets

MXTRAIN_KERNELS(region_targets, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(LastKernel<Device>("RegionTargets", region_targets::MakePlan<Device>));
}
