// SPDX-License-Identifier: Apache-2.0
#pragma once
// box_iou: the intersection over union of every box of lhs [..., 4] with every box of rhs [..., 4];
// output [..., ...]. 0 where boxes have no area in common, also of two without any area. Without a
// gradient, as in MXNet: it is zero.
#include "mxtrain/operator/boxes.h"
#include "mxtrain/operator/property.h"

namespace mxtrain {

struct BoxIouParam : Parameter<BoxIouParam> {
  int format;
  static void Declare(Fields<BoxIouParam>& f) {
    DeclareBoxFormat(f, "format", &BoxIouParam::format,
                     "corner: left, top, right, bottom; center: x, y, width, height");
  }
};

class BoxIouProperty final : public PropertyWithParam<BoxIouParam> {
 public:
  enum Argument { kLhs, kRhs };

  std::string TypeString() const override { return "_contrib_box_iou"; }
  std::string Description() const override {
    return "the intersection over union of every box of one array with every box of another";
  }
  std::vector<std::string> ListArguments() const override { return {"lhs", "rhs"}; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>&,
                                             const std::vector<int>&) const override {
    return {out_grad[0]};
  }
};

}  // namespace mxtrain
