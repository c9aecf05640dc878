// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/cumsum/cumsum.h"

#include "mxtrain/operator/composite.h"

namespace mxtrain::cumsum {

bool CumsumProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                std::vector<TShape>*) const {
  if (param_.axis) {
    const bool known = InferSameShape(*this, in, out);
    if (known) CheckAxis(*param_.axis, (*in)[0], "cumsum");
    return known;
  }
  if (!(*in)[0].known()) return false;
  UnifyShape({(*in)[0].Size()}, &(*out)[0], TypeString(), "output");
  return true;
}

bool CumsumProperty::InferType(std::vector<DType>* in, std::vector<DType>* out,
                               std::vector<DType>* aux) const {
  if (!param_.dtype) return OperatorProperty::InferType(in, out, aux);
  UnifyType(*param_.dtype, &(*out)[0], TypeString(), "output");
  return (*in)[0] != DType::kUnknown;
}

bool CumsumProperty::Lower(Lowering* graph) const {
  if (!param_.dtype) return false;
  Lowering& g = *graph;
  const auto data = g("Cast", {g.argument(0)}, {{"dtype", params::Print(*param_.dtype)}});
  g.SetOutput(0, g("cumsum", {data}, {{"axis", params::Print(param_.axis)}}));
  return true;
}

}  // namespace mxtrain::cumsum

MXTRAIN_OPERATOR(cumsum, registry) {
  using namespace mxtrain;
  registry.AddProperty("cumsum", {"_np_cumsum"},
                       [] { return std::make_unique<cumsum::CumsumProperty>(); });
}
