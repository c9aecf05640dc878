// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/pyramid_proposal_loss/pyramid_proposal_loss.h"

#include "mxtrain/operator/matched_object.h"
#include "mxtrain/operator/registry.h"

namespace mxtrain {

void PyramidProposalLossParam::Declare(Fields<PyramidProposalLossParam>& f) {
  using P = PyramidProposalLossParam;
  DeclarePyramid(f);
  f.Add("foreground", &P::foreground)
      .Default(0.7f)
      .RangeAbove(0, 1)
      .Help("an anchor of at least this intersection over union with an object is to find it");
  f.Add("background", &P::background)
      .Default(0.3f)
      .Range(0, 1)
      .Help("an anchor of less than this with every object is of the background");
  f.Add("samples", &P::samples)
      .Default(256)
      .Range(1, 1 << 24)
      .Help("anchors of an image that are learnt");
  f.Add("object_share", &P::object_share)
      .Default(0.5f)
      .Range(0, 1)
      .Help("at most this share of them is to find an object");
  f.Add("box_weight", &P::box_weight)
      .Default(1.0f)
      .Range(0, 1e6)
      .Help("weight of the boxes beside the scores");
  f.Add("grad_scale", &P::grad_scale).Default(1.0f).Help("factor of the gradient");
}

void PyramidProposalLossProperty::Check() {
  param_.CheckPyramid(TypeString());
  if (param_.background > param_.foreground) {
    Throw(ErrorKind::kConfig, "{}: background = {} is above foreground = {}", TypeString(),
          param_.background, param_.foreground);
  }
}

std::vector<std::string> PyramidProposalLossProperty::ListArguments() const {
  std::vector<std::string> names = param_.MapNames();
  names.push_back("label");
  return names;
}

bool PyramidProposalLossProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                             std::vector<TShape>*) const {
  TShape &label = in->back(), &output = (*out)[0];
  PyramidShape shape;
  // Twice: what a later array says holds for the earlier ones.
  for (int pass = 0; pass < 2; ++pass) {
    std::vector<TShape> maps(in->begin(), in->end() - 1);
    shape = UnifyPyramid(param_, TypeString(), shape.images, &maps);
    std::copy(maps.begin(), maps.end(), in->begin());
    TShape rows{shape.images, TShape::kUnknown, kObjectColumns};
    UnifyShape(label, &rows, TypeString(), "label");
    label = rows;
    UnifyShape(TShape{label[0]}, &output, TypeString(), "output");
    shape.images = label[0] = output[0];
  }
  return label.known() && shape.anchors != TShape::kUnknown;
}

bool PyramidProposalLossProperty::InferType(std::vector<DType>* in, std::vector<DType>* out,
                                            std::vector<DType>*) const {
  return InferLabelledTypes(ListArguments(), TypeString(), in, out);
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(pyramid_proposal_loss, registry) {
  registry.AddProperty("PyramidProposalLoss", {},
                       [] { return std::make_unique<mxtrain::PyramidProposalLossProperty>(); });
}
