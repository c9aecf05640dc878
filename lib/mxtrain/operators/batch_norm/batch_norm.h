// SPDX-License-Identifier: Apache-2.0
#pragma once
// BatchNorm (Ioffe, Szegedy 2015, arXiv 1502.03167): shifts and scales every channel to mean 0 and
// variance 1 over the batch, then by beta and gamma. In training the moving averages are updated by
// the batch's statistics when the gradient is computed; variances are always biased. Otherwise, and
// with use_global_stats, the moving averages replace the statistics.
//
// Outputs: output, mean [C], var [C]; the last holds 1 / sqrt(variance + eps), and both are hidden
// unless output_mean_var. With fix_gamma the scale is 1 and its gradient 0, whatever the array
// holds. For narrow types, statistics and parameters are float32.
//
// _BatchNormActivation, created by the fusion pass, is the same operator with an epilogue of an
// addition and an activation: output = act(BatchNorm(data) [+ sum]). Its gradient does not read the
// sum; kernels may read the output instead. Where convolutions before or behind it do a part of its
// work (_ConvolutionWithBatchNorm), it has two more parameters. with_batch_sums: a last argument,
// `batch_sums` [2, C], holds the sums of each channel's data and of their squares, in the type of
// the statistics; they have no gradient of their own. gated_gradient: the gradient of the output is
// that of what ReLU is applied to, and those of mean and var are its sums over each channel, and
// the sums of it times the normalized data.
#include "mxtrain/operator/registry.h"
#include "mxtrain/operators/activation/epilogue.h"

namespace mxtrain {

struct BatchNormSettings : Epilogue {
  float eps = 1e-3f, momentum = 0.9f;
  bool fix_gamma = true, use_global_stats = false, output_mean_var = false;
  bool with_batch_sums = false, gated_gradient = false;  // in training
  int axis = 1;
};

// Shared by BatchNorm and _BatchNormActivation: everything except the parsing of parameters.
class BatchNormProperty : public OperatorProperty {
 public:
  enum Argument { kData, kGamma, kBeta, kSum };  // the batch sums come last
  enum Output { kOutput, kMean, kInverseDeviation };
  enum Auxiliary { kMovingMean, kMovingVariance };

  virtual const BatchNormSettings& settings() const = 0;

  MixedPrecision mixed_precision() const override { return {MixedPrecision::kFollows, 1}; }

  std::vector<std::string> ListArguments() const override;
  std::vector<std::string> ListOutputs() const override { return {"output", "mean", "var"}; }
  std::vector<std::string> ListAuxiliaryStates() const override {
    return {"moving_mean", "moving_var"};
  }
  int NumVisibleOutputs() const override {
    return settings().output_mean_var || settings().gated_gradient ? 3 : 1;
  }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                 std::vector<DType>* aux) const override;
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>& in_data,
                                             const std::vector<int>& out_data) const override;
  bool HasGradient(int argument) const override;
  std::vector<InplacePair> ForwardInplaceOption() const override;
  std::vector<InplacePair> BackwardInplaceOption() const override;
  std::vector<InplacePair> BackwardIdentityOption() const override;
};

// Sums of a divided batch (operator/batch_sums.h), in an array [2 C + 1]. Forward: the sum of each
// channel's elements, the sums of their squares, the number of elements of a channel. In double, so
// that the variance loses less by their difference, about 1e-16 mean^2, than by rounding the data
// to float32. Backward: the sums of the gradient, those of the gradient times the deviation from
// the mean, the same number.
inline int64_t NumChannelSums(int64_t channels) {
  return 2 * channels + 1;
}

// The channel axis of an array of `ndim` axes; throws kConfig.
MXTRAIN_API int ChannelAxis(const BatchNormSettings& settings, int ndim);

}  // namespace mxtrain
