// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/point_box_loss/point_box_loss.h"

#include "mxtrain/operator/registry.h"

namespace mxtrain {

void PointBoxLossParam::Declare(Fields<PointBoxLossParam>& f) {
  using P = PointBoxLossParam;
  DeclareStrides(f, &P::strides);
  f.Add("candidates", &P::candidates)
      .Default(13)
      .Range(1, PointBoxLossProperty::kMostCandidates)
      .Help("points that are to find an object, at most");
  f.Add("score_power", &P::score_power)
      .Default(1.0f)
      .Range(0, 100)
      .Help("weight of the score when they are chosen");
  f.Add("overlap_power", &P::overlap_power)
      .Default(6.0f)
      .Range(0, 100)
      .Help("weight of the intersection over union when they are chosen");
  f.Add("focal_gamma", &P::focal_gamma)
      .Default(2.0f)
      .Range(0, 100)
      .Help("the higher, the less scores count that are nearly right; 0: cross-entropy");
  f.Add("box_weight", &P::box_weight)
      .Default(2.0f)
      .Range(0, 1e6)
      .Help("weight of the boxes beside the scores");
  f.Add("grad_scale", &P::grad_scale).Default(1.0f).Help("factor of the gradient");
}

std::vector<std::string> PointBoxLossProperty::ListArguments() const {
  std::vector<std::string> names = PointMapNames(param_.strides);
  names.push_back("label");
  return names;
}

bool PointBoxLossProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                      std::vector<TShape>*) const {
  TShape &label = in->back(), &output = (*out)[0];
  PointGridShape grid = UnifyPointMaps(param_.strides, TypeString(), in);
  TShape rows{grid.images, TShape::kUnknown, kColumns};
  UnifyShape(label, &rows, TypeString(), "label");
  label = rows;
  UnifyShape(TShape{rows[0]}, &output, TypeString(), "output");
  if (grid.images == TShape::kUnknown && output[0] != TShape::kUnknown) {
    (*in)[0][0] = output[0];
    grid = UnifyPointMaps(param_.strides, TypeString(), in);
    label[0] = output[0];
  }
  return label.known() && grid.points != TShape::kUnknown && grid.classes != TShape::kUnknown;
}

// A narrow type does not hold the pixels of a large image.
bool PointBoxLossProperty::InferType(std::vector<DType>* in, std::vector<DType>* out,
                                     std::vector<DType>*) const {
  DType data = (*out)[0];
  for (size_t i = 0; i + 1 < in->size() && data == DType::kUnknown; ++i) data = (*in)[i];
  if (data == DType::kUnknown) return false;
  const std::vector<std::string> names = ListArguments();
  for (size_t i = 0; i + 1 < in->size(); ++i) UnifyType(data, &(*in)[i], TypeString(), names[i]);
  UnifyType(data, &(*out)[0], TypeString(), "output");
  UnifyType(data == DType::kFloat64 ? data : DType::kFloat32, &in->back(), TypeString(), "label");
  return true;
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(point_box_loss, registry) {
  registry.AddProperty("PointBoxLoss", {},
                       [] { return std::make_unique<mxtrain::PointBoxLossProperty>(); });
}
