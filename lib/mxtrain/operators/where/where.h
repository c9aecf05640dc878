// SPDX-License-Identifier: Apache-2.0
#pragma once
// where(condition, x, y): x where the condition is not zero, y elsewhere. The condition has the
// shape of x and y, or one element for each index of their first axis; it may be of any type, and
// NaN is not zero. The gradient goes to x or to y in the same way. The condition has none.
#include "mxtrain/operator/property.h"

namespace mxtrain {

class WhereProperty final : public PropertyWithParam<NoParam> {
 public:
  enum Argument { kCondition, kX, kY };

  std::string TypeString() const override { return "where"; }
  std::string Description() const override { return "x where the condition holds, else y"; }
  std::vector<std::string> ListArguments() const override { return {"condition", "x", "y"}; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                 std::vector<DType>* aux) const override;
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>& in_data,
                                             const std::vector<int>&) const override {
    return {out_grad[0], in_data[kCondition]};
  }
  bool HasGradient(int argument) const override { return argument != kCondition; }
  std::vector<InplacePair> ForwardInplaceOption() const override { return {{kX, 0}, {kY, 0}}; }
  // The gradient of x is written last.
  std::vector<InplacePair> BackwardInplaceOption() const override { return {{0, kX}}; }
};

}  // namespace mxtrain
