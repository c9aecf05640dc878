// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/pyramid_proposals/pyramid_proposals.h"

#include "mxtrain/operator/registry.h"

namespace mxtrain {

void PyramidProposalsParam::Declare(Fields<PyramidProposalsParam>& f) {
  using P = PyramidProposalsParam;
  DeclarePyramid(f);
  f.Add("candidates", &P::candidates)
      .Default(1000)
      .Range(1, 1 << 24)
      .Help("so many of the best anchors of each level give boxes");
  f.Add("count", &P::count).Default(1000).Range(1, 1 << 24).Help("regions of an image");
  f.Add("overlap", &P::overlap)
      .Default(0.7f)
      .Range(0, 1)
      .Help(
          "a box with more than this intersection over union with a better one of its level is "
          "suppressed");
  f.Add("least_side", &P::least_side)
      .Default(1e-3f)
      .Range(0)
      .Help("boxes with a shorter side are dropped, in pixels");
}

bool PyramidProposalsProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                          std::vector<TShape>*) const {
  TShape rows{TShape::kUnknown, param_.count, kColumns};
  UnifyShape((*out)[0], &rows, TypeString(), "output");
  const PyramidShape shape = UnifyPyramid(param_, TypeString(), rows[0], in);
  (*out)[0] = {shape.images, param_.count, kColumns};
  return (*out)[0].known() && shape.anchors != TShape::kUnknown;
}

bool PyramidProposalsProperty::InferType(std::vector<DType>* in, std::vector<DType>* out,
                                         std::vector<DType>*) const {
  DType maps = DType::kUnknown;
  for (size_t i = 0; i < in->size() && maps == DType::kUnknown; ++i) maps = (*in)[i];
  if (maps == DType::kUnknown) return false;
  const std::vector<std::string> names = ListArguments();
  for (size_t i = 0; i < in->size(); ++i) UnifyType(maps, &(*in)[i], TypeString(), names[i]);
  // Narrow types cannot represent coordinates of an image.
  UnifyType(maps == DType::kFloat64 ? maps : DType::kFloat32, &(*out)[0], TypeString(), "output");
  return true;
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(pyramid_proposals, registry) {
  registry.AddProperty("PyramidProposals", {},
                       [] { return std::make_unique<mxtrain::PyramidProposalsProperty>(); });
}
