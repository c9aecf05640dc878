// SPDX-License-Identifier: Apache-2.0
#pragma once
// The two operators of operator/loss_scale.h, for float16 training; created by the pass CastForAmp
// and by the optimizer's updater. The first also weighs examples (train/example_weights.h).
//   _scale_gradient     output = data; the gradient of data, in as many equal blocks of axis 0 as
//                       scale [n] has numbers, is the head gradient times the number of the block,
//                       and 0 where that is 0, also for a head gradient that is not finite
//   _loss_scale_update  after a backward pass. `sums` [N] float64: the sum of squares of each
//                       gradient (multi_sum_sq). `scalars` [K, 4]: one row per parameter update
//                       (optimizer_update.h). The gradient factor becomes factor / S, or 0 if a sum
//                       is not finite: an update with factor 0 is skipped. `state` and `scale` [1],
//                       which _scale_gradient reads, get the next step's S.
#include "mxtrain/operator/property.h"

namespace mxtrain {

class ScaleGradientProperty final : public PropertyWithParam<NoParam> {
 public:
  std::string TypeString() const override { return "_scale_gradient"; }
  std::string Description() const override {
    return "the identity; its gradient is the head gradient times `scale`, a number for each of "
           "equal blocks of axis 0";
  }
  std::vector<std::string> ListArguments() const override { return {"data", "scale"}; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                 std::vector<DType>* aux) const override;
  bool HasGradient(int argument) const override { return argument == 0; }
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>& in_data,
                                             const std::vector<int>&) const override {
    return {out_grad[0], in_data[1]};
  }
  std::vector<InplacePair> ForwardInplaceOption() const override { return {{0, 0}}; }
  std::vector<InplacePair> ForwardIdentityOption() const override { return {{0, 0}}; }
  std::vector<InplacePair> BackwardInplaceOption() const override { return {{0, 0}}; }
};

class LossScaleUpdateProperty final : public PropertyWithParam<NoParam> {
 public:
  std::string TypeString() const override { return "_loss_scale_update"; }
  std::string Description() const override {
    return "removes the loss scale from an update's scalars and computes the next step's scale";
  }
  std::vector<std::string> ListArguments() const override { return {"sums", "scalars"}; }
  std::vector<std::string> ListAuxiliaryStates() const override { return {"state", "scale"}; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                 std::vector<DType>* aux) const override;
  bool HasGradient(int) const override { return false; }
  std::vector<int> DeclareBackwardDependency(const std::vector<int>&, const std::vector<int>&,
                                             const std::vector<int>&) const override {
    return {};
  }
  std::vector<InplacePair> ForwardInplaceOption() const override { return {{1, 0}}; }
};

}  // namespace mxtrain
