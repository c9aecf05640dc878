// SPDX-License-Identifier: Apache-2.0
#pragma once
// FullyConnected: output = data weight^T + bias. weight [num_hidden, inputs], bias [num_hidden].
// With `flatten` data are viewed as [N, inputs] and the output is [N, num_hidden]; without, only
// the last axis changes.
#include "mxtrain/operator/property.h"

namespace mxtrain {

struct FullyConnectedParam : Parameter<FullyConnectedParam> {
  int num_hidden;
  bool no_bias, flatten;
  static void Declare(Fields<FullyConnectedParam>& f);
};

class FullyConnectedProperty final : public PropertyWithParam<FullyConnectedParam> {
 public:
  enum Argument { kData, kWeight, kBias };

  std::string TypeString() const override { return "FullyConnected"; }
  MixedPrecision mixed_precision() const override { return {MixedPrecision::kGains, 2}; }
  std::string Description() const override { return "matrix product with a weight, plus a bias"; }
  std::vector<std::string> ListArguments() const override;
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                 std::vector<DType>* aux) const override;
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>& in_data,
                                             const std::vector<int>& out_data) const override;
  double ForwardFlops(const std::vector<TShape>& in, const std::vector<TShape>& out) const override;

  // Data as the matrix [rows, inputs] of the product; `data` must be known.
  TShape MatrixOf(const TShape& data) const;

 private:
  void InferFlat(TShape* data, TShape* weight, TShape* output) const;
  void InferLastAxis(TShape* data, TShape* weight, TShape* output) const;
};

}  // namespace mxtrain
