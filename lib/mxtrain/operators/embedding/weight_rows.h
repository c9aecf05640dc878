// SPDX-License-Identifier: Apache-2.0
#pragma once
// What operators over rows of a weight [input_dim, output_dim] share, which the data select. The
// data have no gradient, and any numeric type.
#include "mxtrain/operator/property.h"

namespace mxtrain {

template <typename P>
void DeclareWeightRows(Fields<P>& f) {
  f.Add("input_dim", &P::input_dim).Required().Range(1).Help("rows of the weight: words");
  f.Add("output_dim", &P::output_dim).Required().Range(1).Help("length of a row");
}

template <typename P>
class WeightRowsProperty : public PropertyWithParam<P> {
 public:
  enum Argument { kData, kWeight };

  std::vector<std::string> ListArguments() const override { return {"data", "weight"}; }
  bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                 std::vector<DType>*) const override {
    DType& weight = (*in)[kWeight];
    if (weight == DType::kUnknown) weight = (*out)[0];
    if (weight == DType::kUnknown) weight = default_type();
    UnifyType(weight, &(*out)[0], this->TypeString(), "output");
    return (*in)[kData] != DType::kUnknown;
  }
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>& in_data,
                                             const std::vector<int>&) const override {
    return {out_grad[0], in_data[kData]};
  }
  bool HasGradient(int argument) const override { return argument == kWeight; }

 protected:
  // Of a weight whose type is not known otherwise.
  virtual DType default_type() const { return DType::kFloat32; }
};

}  // namespace mxtrain
