// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/cast/cast.h"

#include "mxtrain/operator/registry.h"

namespace mxtrain {

bool CastProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                              std::vector<TShape>*) const {
  return InferSameShape(*this, in, out);
}

bool CastProperty::InferType(std::vector<DType>* in, std::vector<DType>* out,
                             std::vector<DType>*) const {
  DType& to = (*out)[0];
  if (to != DType::kUnknown && to != param_.dtype) {
    Throw(ErrorKind::kConfig, "Cast: the output is {}, but dtype = {}", NameOf(to),
          NameOf(param_.dtype));
  }
  to = param_.dtype;
  return (*in)[0] != DType::kUnknown;
}

std::vector<int> CastProperty::DeclareBackwardDependency(const std::vector<int>& out_grad,
                                                         const std::vector<int>&,
                                                         const std::vector<int>&) const {
  return {out_grad[0]};
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(cast, registry) {
  registry.AddProperty("Cast", {"cast"}, [] { return std::make_unique<mxtrain::CastProperty>(); });
}
