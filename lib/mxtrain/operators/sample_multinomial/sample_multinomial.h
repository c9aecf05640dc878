// SPDX-License-Identifier: Apache-2.0
#pragma once
// _sample_multinomial: classes drawn from rows of probabilities, data [..., K]. Each row gives
// classes of shape `shape`: the output has the leading axes of the data, then those of `shape` (one
// axis of length one for a single row and an empty `shape`). With get_prob the second output holds
// the logarithm of each class's probability, whose gradient goes to the data: a head gradient of
// rewards gives the gradient of the expected reward (Williams, "Simple statistical
// gradient-following algorithms", 1992).
//
// A number that the row's sum does not reach, by rounding, is the last class with a probability.
#include "mxtrain/operator/property.h"

namespace mxtrain {

struct SampleMultinomialParam : Parameter<SampleMultinomialParam> {
  TShape shape;
  bool get_prob;
  DType dtype;
  static void Declare(Fields<SampleMultinomialParam>& f) {
    using P = SampleMultinomialParam;
    f.Add("shape", &P::shape)
        .Default(TShape::OfRank(0))
        .Help("shape of the classes of each row; (): one");
    f.Add("get_prob", &P::get_prob)
        .Default(false)
        .Help("also the logarithm of each class's probability");
    f.Add("dtype", &P::dtype).Default(DType::kInt32).Help("type of the classes");
  }
};

class SampleMultinomialProperty final : public PropertyWithParam<SampleMultinomialParam> {
 public:
  enum Output { kClass, kLogProbability };

  std::string TypeString() const override { return "_sample_multinomial"; }
  std::string Description() const override { return "classes drawn from rows of probabilities"; }
  std::vector<std::string> ListOutputs() const override {
    if (!param_.get_prob) return {"output"};
    return {"output0", "output1"};
  }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                 std::vector<DType>* aux) const override;
  bool HasGradient(int) const override { return param_.get_prob; }
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>& in_data,
                                             const std::vector<int>& out_data) const override;
  std::vector<ResourceRequest> ForwardResource(const std::vector<TShape>&) const override {
    return {{ResourceRequest::kRandom, 0}};
  }
};

}  // namespace mxtrain
