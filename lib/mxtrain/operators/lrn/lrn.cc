// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/lrn/lrn.h"

#include "mxtrain/operator/registry.h"

namespace mxtrain {

void LRNParam::Declare(Fields<LRNParam>& f) {
  using P = LRNParam;
  f.Add("nsize", &P::nsize).Required().Range(1).Help("channels in the window (odd)");
  f.Add("alpha", &P::alpha)
      .Default(1e-4f)
      .Range(0)
      .Help("weight of the sum of squares; divided by nsize");
  f.Add("beta", &P::beta).Default(0.75f).Help("exponent");
  f.Add("knorm", &P::knorm).Default(2.0f).RangeAbove(0).Help("constant added to the sum");
}

void LRNProperty::Check() {
  if (param_.nsize % 2 == 0)
    Throw(ErrorKind::kConfig, "{}: nsize = {} must be odd", TypeString(), param_.nsize);
}

bool LRNProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                             std::vector<TShape>*) const {
  TShape common = TShape::OfRank(4);
  UnifyShape((*in)[0], &common, TypeString(), "data");
  UnifyShape((*out)[0], &common, TypeString(), "output");
  UnifyShape((*out)[1], &common, TypeString(), "tmp_norm");
  (*in)[0] = (*out)[0] = (*out)[1] = common;
  return common.known();
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(lrn, registry) {
  registry.AddProperty("LRN", {}, [] { return std::make_unique<mxtrain::LRNProperty>(); });
}
