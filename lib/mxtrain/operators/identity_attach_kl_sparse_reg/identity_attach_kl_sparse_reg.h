// SPDX-License-Identifier: Apache-2.0
#pragma once
// IdentityAttachKLSparseReg: the identity, whose gradient also keeps the mean activation of every
// unit near a target: data [N, units] of activations in (0, 1). The auxiliary state moving_avg
// [units] becomes r = momentum r + (1 - momentum) (mean over the batch) in backward, and the
// gradient is that of the output plus penalty (-t / r + (1 - t) / (1 - r)), the derivative of the
// Kullback-Leibler divergence from the target t.
#include "mxtrain/operator/property.h"

namespace mxtrain {

struct KlSparseParam : Parameter<KlSparseParam> {
  double sparseness_target, penalty, momentum;
  static void Declare(Fields<KlSparseParam>& f) {
    f.Add("sparseness_target", &KlSparseParam::sparseness_target)
        .Range(0, 1)
        .Default(0.1)
        .Help("the mean activation of a unit that is wanted");
    f.Add("penalty", &KlSparseParam::penalty).Default(0.001).Help("factor of the divergence");
    f.Add("momentum", &KlSparseParam::momentum)
        .Range(0, 1)
        .Default(0.9)
        .Help("what the moving average keeps");
  }
};

class KlSparseProperty final : public PropertyWithParam<KlSparseParam> {
 public:
  std::string TypeString() const override { return "IdentityAttachKLSparseReg"; }
  std::string Description() const override {
    return "the identity with a gradient that keeps activations sparse";
  }
  std::vector<std::string> ListAuxiliaryStates() const override { return {"moving_avg"}; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                 std::vector<DType>* aux) const override;
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>&,
                                             const std::vector<int>& out_data) const override {
    return {out_grad[0], out_data[0]};
  }
  std::vector<InplacePair> ForwardInplaceOption() const override { return {{0, 0}}; }
  std::vector<InplacePair> ForwardIdentityOption() const override { return {{0, 0}}; }
  std::vector<InplacePair> BackwardInplaceOption() const override { return {{0, 0}}; }
};

}  // namespace mxtrain
