// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/anchor_box_loss/anchor_box_loss.h"

#include "mxtrain/operator/labelled_objects.h"
#include "mxtrain/operator/registry.h"

namespace mxtrain {

void AnchorBoxLossParam::Declare(Fields<AnchorBoxLossParam>& f) {
  using P = AnchorBoxLossParam;
  DeclareAnchors(f);
  f.Add("overlap_threshold", &P::overlap_threshold)
      .Default(0.5f)
      .RangeAbove(0, 1)
      .Help("an anchor of at least this intersection over union with an object is to find it");
  f.Add("negative_ratio", &P::negative_ratio)
      .Default(3.0f)
      .Range(0, 1e6)
      .Help("anchors of the background that are learnt, for each that is to find an object");
  f.Add("box_weight", &P::box_weight)
      .Default(1.0f)
      .Range(0, 1e6)
      .Help("weight of the boxes beside the scores");
  f.Add("grad_scale", &P::grad_scale).Default(1.0f).Help("factor of the gradient");
}

std::vector<std::string> AnchorBoxLossProperty::ListArguments() const {
  std::vector<std::string> names = AnchorArgumentNames();
  names.push_back("label");
  return names;
}

bool AnchorBoxLossProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                       std::vector<TShape>*) const {
  TShape &label = (*in)[kLabel], &output = (*out)[0];
  AnchorShape shape;
  // Twice: what a later array says holds for the earlier ones.
  for (int pass = 0; pass < 2; ++pass) {
    shape = UnifyAnchors(TypeString(), shape, in);
    TShape rows{shape.images, TShape::kUnknown, kObjectColumns};
    UnifyShape(label, &rows, TypeString(), "label");
    label = rows;
    UnifyShape(TShape{label[0]}, &output, TypeString(), "output");
    shape.images = label[0] = output[0];
  }
  return label.known() && shape.count != TShape::kUnknown && shape.columns != TShape::kUnknown;
}

bool AnchorBoxLossProperty::InferType(std::vector<DType>* in, std::vector<DType>* out,
                                      std::vector<DType>*) const {
  return InferLabelledTypes(ListArguments(), TypeString(), in, out);
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(anchor_box_loss, registry) {
  registry.AddProperty("AnchorBoxLoss", {},
                       [] { return std::make_unique<mxtrain::AnchorBoxLossProperty>(); });
}
