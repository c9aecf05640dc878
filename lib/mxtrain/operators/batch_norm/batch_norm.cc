// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/batch_norm/batch_norm.h"

#include <algorithm>

namespace mxtrain {
namespace {

template <typename P>
void DeclareSettings(Fields<P>& f) {
  f.Add("eps", &P::eps).Default(1e-3f).Range(0).Help("added to the variance");
  f.Add("momentum", &P::momentum)
      .Default(0.9f)
      .Range(0, 1)
      .Help("fraction of the moving averages that a step keeps");
  f.Add("fix_gamma", &P::fix_gamma)
      .Default(true)
      .Help("scale by 1; gamma is not read and not trained");
  f.Add("use_global_stats", &P::use_global_stats)
      .Default(false)
      .Help("normalize by the moving averages in training too");
  f.Add("output_mean_var", &P::output_mean_var)
      .Default(false)
      .Help("show mean and inverse standard deviation as outputs");
  f.Add("axis", &P::axis).Default(1).Help("axis of the channels; negative counts from the end");
  f.Ignored("cudnn_off", "use an implementation other than cuDNN's");
  f.Ignored("min_calib_range", "quantisation");
  f.Ignored("max_calib_range", "quantisation");
}

struct BatchNormParam : BatchNormSettings, Parameter<BatchNormParam> {
  static void Declare(Fields<BatchNormParam>& f) { DeclareSettings(f); }
};

struct BatchNormActivationParam : BatchNormSettings, Parameter<BatchNormActivationParam> {
  static void Declare(Fields<BatchNormActivationParam>& f) {
    DeclareSettings(f);
    Epilogue::Declare(f, /*self_gated=*/true);
    f.Add("with_batch_sums", &BatchNormActivationParam::with_batch_sums)
        .Default(false)
        .Help("in training a last argument holds the sums of each channel and of its squares");
    f.Add("gated_gradient", &BatchNormActivationParam::gated_gradient)
        .Default(false)
        .Help("the given gradient has passed ReLU; those of mean and var are its sums");
  }
};

template <typename P>
class BatchNormOf final : public BatchNormProperty {
 public:
  BatchNormOf(const char* type, const char* description) : type_(type), description_(description) {}

  std::string TypeString() const override { return type_; }
  std::string Description() const override { return description_; }
  void Init(const Kwargs& kwargs) override {
    param_.Init(kwargs, type_);
    if (param_.self_gated() && param_.with_sum)
      Throw(ErrorKind::kConfig, "{}: with_sum goes with the activations relu and relu6 only",
            type_);
    if ((param_.with_batch_sums || param_.gated_gradient) && param_.use_global_stats) {
      Throw(ErrorKind::kConfig,
            "{}: with_batch_sums and gated_gradient go with the statistics of the batch only",
            type_);
    }
    if (param_.gated_gradient && (param_.act != Epilogue::kRelu || param_.with_sum ||
                                  param_.fix_gamma || param_.output_mean_var)) {
      Throw(ErrorKind::kConfig,
            "{}: gated_gradient goes with act = relu, fix_gamma = False, no sum and hidden "
            "statistics",
            type_);
    }
  }
  Kwargs GetParams() const override { return param_.ToKwargs(); }
  std::vector<FieldInfo> DescribeParams() const override { return P::Describe(); }
  const BatchNormSettings& settings() const override { return param_; }

 private:
  const char *type_, *description_;
  P param_;
};

}  // namespace

int ChannelAxis(const BatchNormSettings& settings, int ndim) {
  const int axis = settings.axis < 0 ? settings.axis + ndim : settings.axis;
  if (axis < 0 || axis >= ndim)
    Throw(ErrorKind::kConfig, "BatchNorm: axis = {} is out of range for data of {} axes",
          settings.axis, ndim);
  return axis;
}

std::vector<std::string> BatchNormProperty::ListArguments() const {
  std::vector<std::string> names = {"data", "gamma", "beta"};
  if (settings().with_sum) names.push_back("sum");
  if (settings().with_batch_sums) names.push_back("batch_sums");
  return names;
}

bool BatchNormProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                   std::vector<TShape>* aux) const {
  TShape& data = (*in)[kData];
  UnifyShape((*out)[kOutput], &data, TypeString(), "output");
  if (settings().with_sum) UnifyShape((*in)[kSum], &data, TypeString(), "sum");
  TShape channels = TShape::OfRank(1);
  const int axis = data.has_rank() ? ChannelAxis(settings(), data.ndim()) : 0;
  if (data.has_rank()) channels[0] = data[axis];
  aux->resize(2);
  const auto per_channel = [&](const char* what, TShape* shape) {
    UnifyShape(*shape, &channels, TypeString(), what);
    *shape = channels;
  };
  const auto batch_sums = [&] {
    TShape shape{2, channels[0]};
    UnifyShape(in->back(), &shape, TypeString(), "batch_sums");
    in->back() = shape;
    channels[0] = shape[1];
  };
  for (int round = 0; round < 2; ++round) {  // facts from the last array reach the first
    if (settings().with_batch_sums) batch_sums();
    per_channel("gamma", &(*in)[kGamma]);
    per_channel("beta", &(*in)[kBeta]);
    per_channel("mean", &(*out)[kMean]);
    per_channel("var", &(*out)[kInverseDeviation]);
    per_channel("moving_mean", &(*aux)[kMovingMean]);
    per_channel("moving_var", &(*aux)[kMovingVariance]);
  }
  if (data.has_rank()) data[axis] = channels[0];
  (*out)[kOutput] = data;
  if (settings().with_sum) (*in)[kSum] = data;
  return data.known();
}

bool BatchNormProperty::InferType(std::vector<DType>* in, std::vector<DType>* out,
                                  std::vector<DType>* aux) const {
  DType type = (*in)[kData] != DType::kUnknown ? (*in)[kData] : (*out)[kOutput];
  if (type == DType::kUnknown) return false;
  const DType wide = type == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  const auto set = [&](DType* at, DType wanted, const char* what) {
    UnifyType(wanted, at, TypeString(), format("{} for {} data", what, NameOf(type)));
  };
  aux->resize(2, DType::kUnknown);
  (*in)[kData] = type;
  set(&(*out)[kOutput], type, "output");
  set(&(*in)[kGamma], wide, "gamma");
  set(&(*in)[kBeta], wide, "beta");
  if (settings().with_sum) set(&(*in)[kSum], type, "sum");
  if (settings().with_batch_sums) set(&in->back(), wide, "batch_sums");
  set(&(*out)[kMean], wide, "mean");
  set(&(*out)[kInverseDeviation], wide, "var");
  set(&(*aux)[kMovingMean], wide, "moving_mean");
  set(&(*aux)[kMovingVariance], wide, "moving_var");
  return true;
}

// Without a sum the activation's part of the gradient is recomputed from the data, which reads
// beta.
std::vector<int> BatchNormProperty::DeclareBackwardDependency(const std::vector<int>& out_grad,
                                                              const std::vector<int>& in_data,
                                                              const std::vector<int>&) const {
  std::vector<int> reads = {out_grad[kOutput], in_data[kData], in_data[kGamma]};
  if (settings().gated_gradient) {
    reads.insert(reads.end(), {out_grad[kMean], out_grad[kInverseDeviation]});
    return reads;
  }
  if (settings().act != BatchNormSettings::kNone && !settings().with_sum)
    reads.push_back(in_data[kBeta]);
  return reads;
}

bool BatchNormProperty::HasGradient(int argument) const {
  return !settings().with_batch_sums || argument < (settings().with_sum ? kSum + 1 : kSum);
}

std::vector<InplacePair> BatchNormProperty::ForwardInplaceOption() const {
  if (settings().with_sum) return {{kSum, kOutput}, {kData, kOutput}};
  return {{kData, kOutput}};
}

std::vector<InplacePair> BatchNormProperty::BackwardInplaceOption() const {
  if (settings().with_sum) return {{kOutput, kSum}, {kOutput, kData}};
  return {{kOutput, kData}};
}

std::vector<InplacePair> BatchNormProperty::BackwardIdentityOption() const {
  if (settings().with_sum && settings().act == BatchNormSettings::kNone) return {{kOutput, kSum}};
  return {};
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(batch_norm, registry) {
  using namespace mxtrain;
  registry.AddProperty("BatchNorm", {"BatchNorm_v1", "CuDNNBatchNorm"}, [] {
    return std::make_unique<BatchNormOf<BatchNormParam>>(
        "BatchNorm", "batch normalization over every axis except the channel axis");
  });
  registry.AddProperty("_BatchNormActivation", {}, [] {
    return std::make_unique<BatchNormOf<BatchNormActivationParam>>(
        "_BatchNormActivation",
        "BatchNorm, addition and activation in one (created by the fusion pass)");
  });
  AddEpiloguePatterns(registry, "BatchNorm", "_BatchNormActivation", /*sums=*/true,
                      /*self_gated=*/true, {},
                      [](const OperatorProperty& layer) { return layer.NumVisibleOutputs() == 1; });
}
