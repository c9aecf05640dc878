#pragma once
// BatchNorm (Ioffe, Szegedy 2015, arXiv 1502.03167): every channel is shifted and scaled to mean 0 and variance 1 over the batch, then by
// beta and gamma. In training the moving averages take up the batch's statistics when the gradient is computed; variances are the biased
// ones throughout. Otherwise, and with use_global_stats, the moving averages stand in for the statistics.
//
// Outputs: output, mean [C], var [C]; the last holds 1 / sqrt(variance + eps), and both are hidden unless output_mean_var. With fix_gamma
// the scale is 1 and its gradient 0, whatever the array holds. Narrow types keep statistics and parameters in float32.
#include "mxtrain/operator/registry.h"

namespace mxtrain {

struct BatchNormParam : Parameter<BatchNormParam> {
  float eps, momentum;
  bool fix_gamma, use_global_stats, output_mean_var;
  int axis;
  static void Declare(Fields<BatchNormParam>& f);
};

class BatchNormProperty : public PropertyWithParam<BatchNormParam> {
 public:
  enum Argument { kData, kGamma, kBeta };
  enum Output { kOutput, kMean, kInverseDeviation };
  enum Auxiliary { kMovingMean, kMovingVariance };

  std::string TypeString() const override { return "BatchNorm"; }
  std::string Description() const override { return "batch normalisation over every axis but that of the channels"; }
  std::vector<std::string> ListArguments() const override { return {"data", "gamma", "beta"}; }
  std::vector<std::string> ListOutputs() const override { return {"output", "mean", "var"}; }
  std::vector<std::string> ListAuxiliaryStates() const override { return {"moving_mean", "moving_var"}; }
  int NumVisibleOutputs() const override { return param_.output_mean_var ? 3 : 1; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out, std::vector<TShape>* aux) const override;
  bool InferType(std::vector<DType>* in, std::vector<DType>* out, std::vector<DType>* aux) const override;
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad, const std::vector<int>& in_data,
                                             const std::vector<int>& out_data) const override;
  std::vector<InplacePair> ForwardInplaceOption() const override { return {{kData, kOutput}}; }
  std::vector<InplacePair> BackwardInplaceOption() const override { return {{kOutput, kData}}; }
};

// Axis of the channels in an array of `ndim` axes; throws kConfig.
int ChannelAxis(const BatchNormParam& param, int ndim);

// The reference row, for BatchNorm and, with `relu`, for _BatchNormReLU.
Expected<Plan, Refusal> PlanBatchNormReference(const OperatorProperty& property, const PlanRequest& request, bool relu);
// By oneDNN.
Expected<Plan, Refusal> PlanBatchNormOneDnn(const OperatorProperty& property, const PlanRequest& request, Backend& backend, bool relu);

}  // namespace mxtrain
