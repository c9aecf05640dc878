// SPDX-License-Identifier: Apache-2.0
#pragma once
// Part of an array: slice (crop: begin, end and step of the first axes, as Python slices),
// slice_axis (a range of one axis), slice_like (the first indices, as many as another array has).
// The gradient outside of the slice is zero.
#include <optional>

#include "mxtrain/operator/view_operator.h"

namespace mxtrain {

struct SliceParam : Parameter<SliceParam> {
  std::vector<std::string> begin, end, step;  // integers or None
  static void Declare(Fields<SliceParam>& f) {
    f.Add("begin", &SliceParam::begin)
        .Required()
        .Help("first indices, negative from the end; None: the axis's first in step's direction");
    f.Add("end", &SliceParam::end)
        .Required()
        .Help("indices after the last, negative from the end; None: the axis's end");
    f.Add("step", &SliceParam::step)
        .Default({})
        .Help("distances of the indices, negative to reverse; None: 1");
  }
};

class SliceProperty final : public RangesProperty<SliceParam> {
 public:
  MixedPrecision mixed_precision() const override { return {MixedPrecision::kFollows}; }
  std::string TypeString() const override { return "slice"; }
  std::string Description() const override { return "extracts a range of each axis"; }
  std::vector<AxisRange> RangesOf(const std::vector<TShape>& in) const override;

 protected:
  void Check() override;

 private:
  std::vector<std::optional<int64_t>> begin_, end_, step_;  // one each for the first axes
};

struct SliceAxisParam : Parameter<SliceAxisParam> {
  int axis;
  int64_t begin;
  std::optional<int64_t> end;
  static void Declare(Fields<SliceAxisParam>& f) {
    f.Add("axis", &SliceAxisParam::axis)
        .Required()
        .Help("axis to slice; negative counts from the end");
    f.Add("begin", &SliceAxisParam::begin)
        .Required()
        .Help("first index; negative counts from the end");
    f.Add("end", &SliceAxisParam::end)
        .Required()
        .Help("index after the last; negative counts from the end; None: the end");
  }
};

class SliceAxisProperty final : public RangesProperty<SliceAxisParam> {
 public:
  MixedPrecision mixed_precision() const override { return {MixedPrecision::kFollows}; }
  std::string TypeString() const override { return "slice_axis"; }
  std::string Description() const override { return "extracts a range of one axis"; }
  std::vector<AxisRange> RangesOf(const std::vector<TShape>& in) const override;
};

struct SliceLikeParam : Parameter<SliceLikeParam> {
  TShape axes;
  static void Declare(Fields<SliceLikeParam>& f) {
    f.Add("axes", &SliceLikeParam::axes)
        .Default(TShape(std::span<const int64_t>()))
        .Help("axes to slice, negative from the end; (): all");
  }
};

// The gradient of shape_like is zero.
class SliceLikeProperty final : public RangesProperty<SliceLikeParam> {
 public:
  std::string TypeString() const override { return "slice_like"; }
  std::string Description() const override {
    return "extracts the first indices of axes, as many as another array has";
  }
  std::vector<std::string> ListArguments() const override { return {"data", "shape_like"}; }
  std::vector<AxisRange> RangesOf(const std::vector<TShape>& in) const override;
};

}  // namespace mxtrain

MXTRAIN_KERNELS(slice, Device, registry) {
  registry.AddKernel(mxtrain::ViewKernel<mxtrain::SliceParam, Device>("slice"));
  registry.AddKernel(mxtrain::ViewKernel<mxtrain::SliceAxisParam, Device>("slice_axis"));
  registry.AddKernel(mxtrain::ViewKernel<mxtrain::SliceLikeParam, Device>("slice_like"));
}
