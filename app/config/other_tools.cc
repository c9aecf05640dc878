#include "app/config/other_tools.h"

#include <algorithm>
#include <map>
#include <utility>

namespace mxtrain::config {

std::string OperatorOfOtherTools(const std::string& name) {
  static const std::map<std::string, std::string, std::less<>> names = {
      {"Conv", "Convolution"},
      {"Conv2d", "Convolution"},
      {"Conv2D", "Convolution"},
      {"convolutional", "Convolution"},
      {"Linear", "FullyConnected"},
      {"Dense", "FullyConnected"},
      {"InnerProduct", "FullyConnected"},
      {"Gemm", "FullyConnected"},
      {"connected", "FullyConnected"},
      {"ReLU", "Activation: {act_type: relu}"},
      {"Sigmoid", "Activation: {act_type: sigmoid}"},
      {"Tanh", "Activation: {act_type: tanh}"},
      {"MaxPool2d", "Pooling"},
      {"MaxPooling2D", "Pooling"},
      {"MaxPool", "Pooling"},
      {"maxpool", "Pooling"},
      {"AvgPool2d", "Pooling: {pool_type: avg}"},
      {"AveragePooling2D", "Pooling: {pool_type: avg}"},
      {"avgpool", "Pooling: {pool_type: avg, global_pool: true}"},
      {"AdaptiveAvgPool2d", "Pooling: {pool_type: avg, global_pool: true}"},
      {"GlobalAveragePooling2D", "Pooling: {pool_type: avg, global_pool: true}"},
      {"BatchNorm2d", "BatchNorm"},
      {"BatchNormalization", "BatchNorm"},
      {"SoftmaxWithLoss", "SoftmaxOutput"},
      {"CrossEntropyLoss", "SoftmaxOutput"},
      {"FocalLoss", "SoftmaxOutput: {focal_gamma: 2}"},
      {"sigmoid_focal_loss", "SoftmaxOutput: {focal_gamma: 2}"},
      {"BCELoss", "LogisticRegressionOutput"},
      {"BCEWithLogitsLoss", "LogisticRegressionOutput"},
      {"SigmoidCrossEntropyLoss", "LogisticRegressionOutput"},
      {"L1Loss", "MAERegressionOutput"},
      {"Softmax", "SoftmaxOutput"},
      {"softmax", "SoftmaxOutput"},
      {"MSELoss", "LinearRegressionOutput"},
      {"EuclideanLoss", "LinearRegressionOutput"},
      {"ReLU6", "clip: {a_min: 0, a_max: 6}"},
      {"Eltwise", "elemwise_add"},
      {"Add", "elemwise_add"},
      {"shortcut", "elemwise_add"},
      {"route", "Concat"},
      {"cat", "Concat"},
      {"Concatenate", "Concat"}};
  const auto found = names.find(name);
  return found == names.end() ? "" : found->second;
}

std::string ParamOfOtherTools(const std::string& name, std::span<const FieldInfo> params) {
  static constexpr std::pair<const char*, const char*> kNames[] = {{"num_output", "num_filter"},
                                                                   {"num_output", "num_hidden"},
                                                                   {"filters", "num_filter"},
                                                                   {"out_channels", "num_filter"},
                                                                   {"units", "num_hidden"},
                                                                   {"output", "num_hidden"},
                                                                   {"out_features", "num_hidden"},
                                                                   {"kernel_size", "kernel"},
                                                                   {"kernel_shape", "kernel"},
                                                                   {"pool_size", "kernel"},
                                                                   {"size", "kernel"},
                                                                   {"strides", "stride"},
                                                                   {"padding", "pad"},
                                                                   {"pads", "pad"},
                                                                   {"dilation", "dilate"},
                                                                   {"dilation_rate", "dilate"},
                                                                   {"dilations", "dilate"},
                                                                   {"groups", "num_group"},
                                                                   {"group", "num_group"},
                                                                   {"use_bias", "no_bias"},
                                                                   {"bias", "no_bias"},
                                                                   {"bias_term", "no_bias"},
                                                                   {"activation", "act_type"},
                                                                   {"pool", "pool_type"},
                                                                   {"negative_slope", "slope"},
                                                                   {"alpha", "slope"},
                                                                   {"rate", "p"},
                                                                   {"dropout_ratio", "p"},
                                                                   {"probability", "p"},
                                                                   {"epsilon", "eps"},
                                                                   {"affine", "fix_gamma"},
                                                                   {"label_smoothing", "smooth_alpha"},
                                                                   {"gamma", "focal_gamma"},
                                                                   {"class_weight", "class_weights"}};
  for (const auto& [other, own] : kNames) {
    const bool has = std::any_of(params.begin(), params.end(), [own](const FieldInfo& field) { return field.name == own; });
    if (other == name && has) return own;
  }
  return "";
}

}  // namespace mxtrain::config
