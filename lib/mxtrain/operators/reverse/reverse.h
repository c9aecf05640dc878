// SPDX-License-Identifier: Apache-2.0
#pragma once
// reverse (flip): the opposite order along axes.
#include "mxtrain/operator/view_operator.h"

namespace mxtrain {

struct ReverseParam : Parameter<ReverseParam> {
  TShape axis;
  static void Declare(Fields<ReverseParam>& f) {
    f.Add("axis", &ReverseParam::axis).Required().Help("axes to reverse; negative from the end");
  }
};

class ReverseProperty final : public RangesProperty<ReverseParam> {
 public:
  std::string TypeString() const override { return "reverse"; }
  std::string Description() const override { return "reverses the order along axes"; }
  std::vector<AxisRange> RangesOf(const std::vector<TShape>& in) const override;
  bool IsIdentity() const override { return param_.axis.ndim() == 0; }
};

}  // namespace mxtrain

MXTRAIN_KERNELS(reverse, Device, registry) {
  registry.AddKernel(mxtrain::ViewKernel<mxtrain::ReverseParam, Device>("reverse"));
}
