// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/region_levels/region_levels.h"

#include "mxtrain/operator/registry.h"

namespace mxtrain {

void RegionLevelsParam::Declare(Fields<RegionLevelsParam>& f) {
  using P = RegionLevelsParam;
  f.Add("first_level", &P::first_level)
      .Default(2)
      .Range(0, 30)
      .Help("the finest level: log2 of its stride");
  f.Add("last_level", &P::last_level).Default(5).Range(0, 30).Help("the coarsest level");
  f.Add("usual_size", &P::usual_size)
      .Default(224.0f)
      .RangeAbove(0)
      .Help("side of a square region of usual_level, in pixels of the image");
  f.Add("usual_level", &P::usual_level).Default(4.0f).Range(0, 30).Help("the level of such a one");
}

void RegionLevelsProperty::Check() {
  const int count = param_.last_level - param_.first_level + 1;
  if (count >= 1 && count <= kMostLevels) return;
  Throw(ErrorKind::kConfig, "{}: first_level = {}, last_level = {}: expected one to {} levels",
        TypeString(), param_.first_level, param_.last_level, kMostLevels);
}

std::vector<std::string> RegionLevelsProperty::ListOutputs() const {
  std::vector<std::string> names;
  for (int l = 0; l <= param_.last_level - param_.first_level; ++l)
    names.push_back(format("output{}", l));
  return names;
}

bool RegionLevelsProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                      std::vector<TShape>*) const {
  TShape rows{TShape::kUnknown, 5};
  UnifyShape((*in)[0], &rows, TypeString(), "rois");
  for (size_t i = 0; i < out->size(); ++i)
    UnifyShape((*out)[i], &rows, TypeString(), format("output{}", i));
  (*in)[0] = rows;
  for (TShape& shape : *out) shape = rows;
  return rows.known();
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(region_levels, registry) {
  registry.AddProperty("RegionLevels", {},
                       [] { return std::make_unique<mxtrain::RegionLevelsProperty>(); });
}
