// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/where/where.h"

#include "mxtrain/operator/registry.h"

namespace mxtrain {

bool WhereProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                               std::vector<TShape>*) const {
  TShape &condition = (*in)[kCondition], common = (*out)[0];
  UnifyShape((*in)[kX], &common, TypeString(), "x");
  UnifyShape((*in)[kY], &common, TypeString(), "y");
  if (condition.ndim() == 1 && common.ndim() != 0) {
    if (common.has_rank()) {
      TShape rows{common[0]};
      UnifyShape(condition, &rows, TypeString(), "condition");
      condition = rows;
      common[0] = rows[0];
    }
  } else if (condition.has_rank()) {
    UnifyShape(condition, &common, TypeString(), "condition");
    condition = common;
  }
  (*in)[kX] = (*in)[kY] = (*out)[0] = common;
  return common.known() && condition.known();
}

bool WhereProperty::InferType(std::vector<DType>* in, std::vector<DType>* out,
                              std::vector<DType>*) const {
  std::vector<DType> values = {(*in)[kX], (*in)[kY]}, none;
  const bool known = OperatorProperty::InferType(&values, out, &none);
  (*in)[kX] = values[0];
  (*in)[kY] = values[1];
  return known && (*in)[kCondition] != DType::kUnknown;
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(where, registry) {
  registry.AddProperty("where", {}, [] { return std::make_unique<mxtrain::WhereProperty>(); });
}
