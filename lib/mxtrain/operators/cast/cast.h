#pragma once
// Cast: every element in another type. The gradient is the head gradient, cast back; its rows convert between any two types.
//
// A floating value becomes an integer by cutting its fraction off; values beyond the integers' range become its ends, NaN becomes 0.
// Between floating types values are rounded to the nearest, ties to even.
#include "mxtrain/operator/property.h"

namespace mxtrain {

struct CastParam : Parameter<CastParam> {
  DType dtype;
  static void Declare(Fields<CastParam>& f) { f.Add("dtype", &CastParam::dtype).Required().Help("type of the result"); }
};

class CastProperty final : public PropertyWithParam<CastParam> {
 public:
  std::string TypeString() const override { return "Cast"; }
  std::string Description() const override { return "the elements in another type"; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out, std::vector<TShape>* aux) const override;
  bool InferType(std::vector<DType>* in, std::vector<DType>* out, std::vector<DType>* aux) const override;
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad, const std::vector<int>& in_data,
                                             const std::vector<int>& out_data) const override;
  std::vector<InplacePair> ForwardInplaceOption() const override { return {{0, 0}}; }  // granted where the types are one
  std::vector<InplacePair> BackwardInplaceOption() const override { return {{0, 0}}; }
};

}  // namespace mxtrain
