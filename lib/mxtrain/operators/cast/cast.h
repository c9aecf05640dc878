// SPDX-License-Identifier: Apache-2.0
#pragma once
// Cast: converts every element to another type. The gradient is the head gradient, cast back; its
// kernels convert between any two types.
//
// A floating value is truncated to an integer; values out of range saturate, NaN becomes 0. Between
// floating types values are rounded to nearest, ties to even.
#include "mxtrain/operator/property.h"

namespace mxtrain {

struct CastParam : Parameter<CastParam> {
  DType dtype;
  static void Declare(Fields<CastParam>& f) {
    f.Add("dtype", &CastParam::dtype).Required().Help("type of the result");
  }
};

class CastProperty final : public PropertyWithParam<CastParam> {
 public:
  std::string TypeString() const override { return "Cast"; }
  std::string Description() const override { return "converts elements to another type"; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                 std::vector<DType>* aux) const override;
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>& in_data,
                                             const std::vector<int>& out_data) const override;
  // Granted if the types are equal.
  std::vector<InplacePair> ForwardInplaceOption() const override { return {{0, 0}}; }
  std::vector<InplacePair> BackwardInplaceOption() const override { return {{0, 0}}; }
};

}  // namespace mxtrain
