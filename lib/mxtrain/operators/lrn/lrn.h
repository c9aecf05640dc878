// SPDX-License-Identifier: Apache-2.0
#pragma once
// LRN, local response normalization across channels (Krizhevsky, Sutskever, Hinton 2012, section
// 3.3), of images [N, C, H, W]: norm = knorm + alpha / nsize * sum of data^2 over the nsize
// surrounding channels, output = data * norm^-beta.
// `tmp_norm` is the second, hidden output.
#include "mxtrain/operator/property.h"

namespace mxtrain {

struct LRNParam : Parameter<LRNParam> {
  int nsize;
  float alpha, beta, knorm;
  static void Declare(Fields<LRNParam>& f);
};

class LRNProperty final : public PropertyWithParam<LRNParam> {
 public:
  std::string TypeString() const override { return "LRN"; }
  std::string Description() const override {
    return "local response normalization across channels";
  }
  std::vector<std::string> ListOutputs() const override { return {"output", "tmp_norm"}; }
  int NumVisibleOutputs() const override { return 1; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>& in_data,
                                             const std::vector<int>& out_data) const override {
    return {out_grad[0], in_data[0], out_data[1]};
  }

 protected:
  void Check() override;
};

}  // namespace mxtrain
