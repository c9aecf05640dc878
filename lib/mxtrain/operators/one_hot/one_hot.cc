// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/one_hot/one_hot.h"

#include "mxtrain/operator/gather_property.h"
#include "mxtrain/operator/registry.h"

namespace mxtrain {

bool OneHotProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                std::vector<TShape>*) const {
  return InferVectors(param_.depth, &(*in)[0], &(*out)[0], TypeString(), "indices");
}

bool OneHotProperty::InferType(std::vector<DType>* in, std::vector<DType>* out,
                               std::vector<DType>*) const {
  UnifyType(param_.dtype, &(*out)[0], TypeString(), "output");
  return (*in)[0] != DType::kUnknown;
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(one_hot, registry) {
  registry.AddProperty("one_hot", {}, [] { return std::make_unique<mxtrain::OneHotProperty>(); });
}
