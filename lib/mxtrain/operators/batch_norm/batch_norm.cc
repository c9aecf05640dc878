#include "mxtrain/operators/batch_norm/batch_norm.h"

#include <algorithm>

namespace mxtrain {

void BatchNormParam::Declare(Fields<BatchNormParam>& f) {
  using P = BatchNormParam;
  f.Add("eps", &P::eps).Default(1e-3f).Range(0).Help("added to the variance");
  f.Add("momentum", &P::momentum).Default(0.9f).Help("share of the moving averages that a step keeps");
  f.Add("fix_gamma", &P::fix_gamma).Default(true).Help("scale by 1; gamma is not read and not trained");
  f.Add("use_global_stats", &P::use_global_stats).Default(false).Help("normalise by the moving averages in training too");
  f.Add("output_mean_var", &P::output_mean_var).Default(false).Help("show mean and inverse standard deviation as outputs");
  f.Add("axis", &P::axis).Default(1).Help("axis of the channels; negative counts from the end");
  f.Ignored("cudnn_off", "another implementation than cuDNN's");
  f.Ignored("min_calib_range", "quantisation");
  f.Ignored("max_calib_range", "quantisation");
}

int ChannelAxis(const BatchNormParam& param, int ndim) {
  const int axis = param.axis < 0 ? param.axis + ndim : param.axis;
  if (axis < 0 || axis >= ndim) Throw(ErrorKind::kConfig, "BatchNorm: axis = {} is out of range for data of {} axes", param.axis, ndim);
  return axis;
}

bool BatchNormProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out, std::vector<TShape>* aux) const {
  TShape& data = (*in)[kData];
  UnifyShape((*out)[kOutput], &data, TypeString(), "output");
  (*out)[kOutput] = data;
  TShape channels = TShape::OfRank(1);
  if (data.has_rank()) channels[0] = data[ChannelAxis(param_, data.ndim())];
  aux->resize(2);
  const auto per_channel = [&](const char* what, TShape* shape) {
    UnifyShape(*shape, &channels, TypeString(), what);
    *shape = channels;
  };
  for (int round = 0; round < 2; ++round) {  // what the last array knows reaches the first
    per_channel("gamma", &(*in)[kGamma]);
    per_channel("beta", &(*in)[kBeta]);
    per_channel("mean", &(*out)[kMean]);
    per_channel("var", &(*out)[kInverseDeviation]);
    per_channel("moving_mean", &(*aux)[kMovingMean]);
    per_channel("moving_var", &(*aux)[kMovingVariance]);
  }
  if (data.has_rank()) {
    data[ChannelAxis(param_, data.ndim())] = channels[0];
    (*out)[kOutput] = data;
  }
  return data.known();
}

bool BatchNormProperty::InferType(std::vector<DType>* in, std::vector<DType>* out, std::vector<DType>* aux) const {
  DType type = (*in)[kData] != DType::kUnknown ? (*in)[kData] : (*out)[kOutput];
  if (type == DType::kUnknown) return false;
  const DType wide = type == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  const auto set = [&](DType* at, DType wanted, const char* what) {
    if (*at != DType::kUnknown && *at != wanted) {
      Throw(ErrorKind::kConfig, "{}: {} is {}, but with {} data it must be {}", TypeString(), what, NameOf(*at), NameOf(type),
            NameOf(wanted));
    }
    *at = wanted;
  };
  aux->resize(2, DType::kUnknown);
  set(&(*in)[kData], type, "data");
  set(&(*out)[kOutput], type, "output");
  set(&(*in)[kGamma], wide, "gamma");
  set(&(*in)[kBeta], wide, "beta");
  set(&(*out)[kMean], wide, "mean");
  set(&(*out)[kInverseDeviation], wide, "var");
  set(&(*aux)[kMovingMean], wide, "moving_mean");
  set(&(*aux)[kMovingVariance], wide, "moving_var");
  return true;
}

std::vector<int> BatchNormProperty::DeclareBackwardDependency(const std::vector<int>& out_grad, const std::vector<int>& in_data,
                                                              const std::vector<int>&) const {
  return {out_grad[kOutput], in_data[kData], in_data[kGamma]};
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(batch_norm, registry) {
  registry.AddProperty("BatchNorm", {"BatchNorm_v1", "CuDNNBatchNorm"}, [] { return std::make_unique<mxtrain::BatchNormProperty>(); });
}
