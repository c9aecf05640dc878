// SPDX-License-Identifier: Apache-2.0
#pragma once
// Normalization of rows, the elements of an array that share all indices but that of one axis:
//   LayerNorm (Ba, Kiros, Hinton 2016, arXiv 1607.06450):
//     y = (x - mean) / sqrt(variance + eps) * gamma + beta
//   RMSNorm (Zhang, Sennrich 2019, arXiv 1910.07467), along the last axis:
//     y = x / sqrt(mean of x^2 + eps) * gamma
//   _NormalizeRows, along the last num_axes axes together: y = (x - mean) / sqrt(variance + eps),
//     for operators that build on it.
// The variance is biased. gamma and beta have an element for each of a row, which are float32 for
// data of 16-bit types, as for BatchNorm.
//
// LayerNorm's outputs mean and std, which is sqrt(variance + eps), have length 1 along the axis.
// They are hidden unless output_mean_var, and pass no gradient.
//
// The gradient, with n = (x - mean) / s, s = sqrt(variance + eps), and g the head gradient times
// gamma:
//   dx = (g - mean of g - n mean of g n) / s, for RMSNorm without `mean of g`
//   dgamma = sum of head gradient times n, and dbeta = sum of head gradient, over the rows
#include "mxtrain/operator/property.h"

namespace mxtrain {

enum class RowNorm { kLayer, kRootMeanSquare, kPlain };

// What the operators differ in. kPlain is differentiated from its output, which is n, so that the
// data need not be kept.
constexpr bool IsCentred(RowNorm norm) {
  return norm != RowNorm::kRootMeanSquare;
}
constexpr bool HasGamma(RowNorm norm) {
  return norm != RowNorm::kPlain;
}
constexpr bool HasBeta(RowNorm norm) {
  return norm == RowNorm::kLayer;
}
constexpr bool ReadsOutput(RowNorm norm) {
  return norm == RowNorm::kPlain;
}

// The extents of the rows within an array: [outer, length, inner].
struct RowView {
  int64_t outer = 0, length = 0, inner = 0;
  MXTRAIN_HD int64_t rows() const { return outer * inner; }
  // The first element of a row; the others follow at a distance of `inner`.
  MXTRAIN_HD int64_t First(int64_t row) const {
    return inner == 1 ? row * length : row / inner * length * inner + row % inner;
  }
};

// Shared by the three operators: everything except the parsing of parameters.
class RowNormProperty : public OperatorProperty {
 public:
  enum Argument { kData, kGamma, kBeta };
  enum Output { kOutput, kMean, kDeviation };

  // What is differentiated from its output keeps all bits of it.
  MixedPrecision mixed_precision() const override {
    if (ReadsOutput(norm())) return {};
    return {MixedPrecision::kFollows, 1};
  }
  virtual RowNorm norm() const = 0;
  virtual double eps() const = 0;
  // Throws kConfig for an axis that is out of range.
  virtual RowView View(const TShape& data) const = 0;

  std::vector<std::string> ListArguments() const override;
  std::vector<std::string> ListOutputs() const override;
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                 std::vector<DType>* aux) const override;
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>& in_data,
                                             const std::vector<int>& out_data) const override;
  std::vector<InplacePair> ForwardInplaceOption() const override { return {{kData, kOutput}}; }
  std::vector<InplacePair> BackwardInplaceOption() const override { return {{kOutput, kData}}; }

 private:
  // The axis that is normalized, or the first of several; throws kConfig.
  virtual int Axis(int ndim) const = 0;
};

}  // namespace mxtrain
