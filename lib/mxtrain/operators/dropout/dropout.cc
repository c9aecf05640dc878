// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/dropout/dropout.h"

#include "mxtrain/operator/registry.h"

namespace mxtrain {

void DropoutProperty::Check() {
  if (param_.p == 1)
    Throw(ErrorKind::kConfig, "Dropout: p = 1 drops every element; use a fraction below 1");
}

TShape DropoutProperty::MaskShape(const TShape& data) const {
  TShape mask = data;
  for (const int64_t axis : param_.axes) {
    if (axis < 0 || axis >= data.ndim()) {
      Throw(ErrorKind::kConfig,
            "Dropout: axes = {} includes axis {}, but data of shape {} has axes 0 .. {}",
            param_.axes.ToTuple(), axis, data.ToString(), data.ndim() - 1);
    }
    mask[static_cast<int>(axis)] = 1;
  }
  return mask;
}

bool DropoutProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                 std::vector<TShape>*) const {
  TShape& data = (*in)[0];
  UnifyShape((*out)[0], &data, TypeString(), "output");
  if (!data.has_rank()) return false;
  UnifyShape(MaskShape(TShape::OfRank(data.ndim())), &(*out)[1], TypeString(), "mask");
  if (param_.axes.ndim() <= 0) UnifyShape((*out)[1], &data, TypeString(), "mask");
  (*out)[0] = data;
  UnifyShape(MaskShape(data), &(*out)[1], TypeString(), "mask");
  return data.known();
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(dropout, registry) {
  registry.AddProperty("Dropout", {}, [] { return std::make_unique<mxtrain::DropoutProperty>(); });
}
