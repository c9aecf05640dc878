// SPDX-License-Identifier: Apache-2.0
#pragma once
// Dropout: in training every element is zero with probability p, else multiplied by 1 / (1 - p).
// The factors are the hidden output `mask`, with the shape of the data, or length 1 along axes that
// share one draw. The gradient is the mask, drawn again, times the head gradient. Outside of
// training it is the identity, unless mode is `always`.
//
// The draw of a mask element depends only on its row-major index.
#include "mxtrain/operator/property.h"

namespace mxtrain {

enum DropoutMode : int { kDropoutTraining, kDropoutAlways };

struct DropoutParam : Parameter<DropoutParam> {
  float p;
  int mode;
  TShape axes;
  static void Declare(Fields<DropoutParam>& f) {
    f.Add("p", &DropoutParam::p)
        .Range(0, 1)
        .Default(0.5f)
        .Help("fraction of the elements that are dropped");
    f.Add("mode", &DropoutParam::mode)
        .Enum({{"training", kDropoutTraining}, {"always", kDropoutAlways}})
        .Default(kDropoutTraining)
        .Help("training: the identity in evaluation; always: drops in evaluation too");
    f.Add("axes", &DropoutParam::axes)
        .Default(TShape(std::span<const int64_t>()))
        .Help("axes along which one draw is shared");
    f.Ignored("cudnn_off", "disable cuDNN");
  }
};

class DropoutProperty final : public PropertyWithParam<DropoutParam> {
 public:
  std::string TypeString() const override { return "Dropout"; }
  MixedPrecision mixed_precision() const override { return {MixedPrecision::kFollows}; }
  std::string Description() const override { return "drops elements at random in training"; }
  std::vector<std::string> ListOutputs() const override { return {"output", "mask"}; }
  int NumVisibleOutputs() const override { return 1; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>&,
                                             const std::vector<int>&) const override {
    return {out_grad[0]};
  }
  std::vector<InplacePair> ForwardInplaceOption() const override { return {{0, 0}}; }
  std::vector<InplacePair> BackwardInplaceOption() const override { return {{0, 0}}; }
  std::vector<ResourceRequest> ForwardResource(const std::vector<TShape>&) const override {
    return {{ResourceRequest::kRandom, 0}};
  }
  std::vector<ResourceRequest> BackwardResource(const std::vector<TShape>&) const override {
    return {{ResourceRequest::kRandom, 0}};
  }

  // Whether a run drops or copies.
  bool Drops(bool is_train) const {
    return param_.p > 0 && (is_train || param_.mode == kDropoutAlways);
  }
  TShape MaskShape(const TShape& data) const;

 protected:
  void Check() override;
};

}  // namespace mxtrain
