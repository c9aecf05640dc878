// SPDX-License-Identifier: Apache-2.0
#include "app/config/other_tools.h"

#include <algorithm>
#include <map>
#include <regex>
#include <utility>

#include "mxtrain/base/text.h"

namespace mxtrain::config {
namespace {

// "SiLU" of "nn.SiLU", "cat" of "torch.cat".
std::string BareName(const std::string& name) {
  return name.substr(name.rfind('.') + 1);
}

bool IsNumber(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789.-") == std::string::npos;
}

// Replaces each "$N" by `value`, or by N if that is not a number.
std::string Filled(const std::string& line, const std::string& value) {
  static const std::regex slot(R"(\$([0-9.]+))");
  return std::regex_replace(line, slot, IsNumber(value) ? value : "$1");
}

}  // namespace

std::string OperatorOfOtherTools(const std::string& name, const std::string& value) {
  // "$1" stands for the number that was given, else 1.
  static const std::map<std::string, std::string, std::less<>> names = {
      {"Conv", "Convolution"},
      {"Conv2d", "Convolution"},
      {"Conv2D", "Convolution"},
      {"DepthwiseConv2D", "Convolution: {num_group: CHANNELS}"},
      {"convolutional", "Convolution"},
      {"Linear", "FullyConnected"},
      {"Dense", "FullyConnected"},
      {"InnerProduct", "FullyConnected"},
      {"Gemm", "FullyConnected"},
      {"connected", "FullyConnected"},
      {"ReLU", "Activation: {act_type: relu}"},
      {"Sigmoid", "Activation: {act_type: sigmoid}"},
      {"Tanh", "Activation: {act_type: tanh}"},
      {"PReLU", "LeakyReLU: {act_type: prelu}"},
      {"ELU", "LeakyReLU: {act_type: elu, slope: $1}"},
      {"SELU", "LeakyReLU: {act_type: selu}"},
      {"GELU", "gelu"},
      {"SiLU", "silu"},
      {"Swish", "silu"},
      {"Mish", "mish"},
      {"Hardswish", "hard_swish"},
      {"HardSwish", "hard_swish"},
      {"LogSigmoid", "log_sigmoid"},
      {"LayerNormalization", "LayerNorm"},
      {"GroupNormalization", "GroupNorm"},
      {"InstanceNorm1d", "InstanceNorm"},
      {"InstanceNorm2d", "InstanceNorm"},
      {"Upsample", "UpSampling: {scale: $2, sample_type: nearest, num_args: 1}"},
      {"UpSampling2D", "UpSampling: {scale: $2, sample_type: nearest, num_args: 1}"},
      {"ConstantPad2d", "Pad: {mode: constant, pad_width: [0, 0, 0, 0, $1, $1, $1, $1]}"},
      {"ZeroPad2d", "Pad: {mode: constant, pad_width: [0, 0, 0, 0, $1, $1, $1, $1]}"},
      {"ReflectionPad2d", "Pad: {mode: reflect, pad_width: [0, 0, 0, 0, $1, $1, $1, $1]}"},
      {"ReplicationPad2d", "Pad: {mode: edge, pad_width: [0, 0, 0, 0, $1, $1, $1, $1]}"},
      {"LogSoftmax", "log_softmax"},
      {"Attention", "scaled_dot_product_attention, as in configs/common/transformer.yaml"},
      {"MultiheadAttention", "scaled_dot_product_attention, as in configs/common/transformer.yaml"},
      {"StochasticDepth", "DropPath"},
      {"LSTM", "RNN: {mode: lstm, state_size: $128, num_layers: 1}"},
      {"GRU", "RNN: {mode: gru, state_size: $128, num_layers: 1}"},
      {"SimpleRNN", "RNN: {mode: rnn_tanh, state_size: $128, num_layers: 1}"},
      {"BiLSTM", "RNN: {mode: lstm, state_size: $128, num_layers: 1, bidirectional: true}"},
      {"Softplus", "Activation: {act_type: softrelu}"},
      {"Hardtanh", "clip: {a_min: -1, a_max: 1}"},
      {"unsqueeze", "expand_dims: {axis: $1}"},
      {"permute", "transpose"},
      {"bmm", "batch_dot"},
      {"matmul", "linalg_gemm2"},
      {"interpolate", "UpSampling: {scale: $2, sample_type: nearest, num_args: 1}"},
      {"UpsamplingBilinear2d", "BilinearResize2D: {scale_height: $2, scale_width: $2}"},
      {"UpsamplingNearest2d", "UpSampling: {scale: $2, sample_type: nearest, num_args: 1}"},
      {"roi_align", "ROIAlign"},
      {"roi_pool", "ROIPooling"},
      {"Conv1d", "Convolution"},
      {"Conv1D", "Convolution"},
      {"Conv3d", "Convolution"},
      {"Conv3D", "Convolution"},
      {"Deconv", "Deconvolution"},
      {"ConvTranspose", "Deconvolution"},
      {"ConvTranspose1d", "Deconvolution"},
      {"ConvTranspose2d", "Deconvolution"},
      {"ConvTranspose3d", "Deconvolution"},
      {"Conv2DTranspose", "Deconvolution"},
      {"unfold", "im2col"},
      {"fold", "col2im"},
      {"grid_sample", "BilinearSampler"},
      {"affine_grid", "GridGenerator: {transform_type: affine}"},
      {"MaxPool1d", "Pooling"},
      {"MaxPool3d", "Pooling"},
      {"AvgPool1d", "Pooling: {pool_type: avg}"},
      {"AvgPool3d", "Pooling: {pool_type: avg}"},
      {"LPPool2d", "Pooling: {pool_type: lp, p_value: 2}"},
      {"MaxPool2d", "Pooling"},
      {"MaxPooling2D", "Pooling"},
      {"MaxPool", "Pooling"},
      {"maxpool", "Pooling"},
      {"GlobalMaxPooling2D", "Pooling: {pool_type: max, global_pool: true}"},
      {"AvgPool2d", "Pooling: {pool_type: avg}"},
      {"AveragePooling2D", "Pooling: {pool_type: avg}"},
      {"avgpool", "Pooling: {pool_type: avg, global_pool: true}"},
      {"AdaptiveAvgPool2d", "AdaptiveAvgPooling2D"},
      {"GlobalAveragePooling2D", "Pooling: {pool_type: avg, global_pool: true}"},
      {"BatchNorm1d", "BatchNorm"},
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
      {"Multiply", "elemwise_mul"},
      {"shortcut", "elemwise_add"},
      {"route", "Concat"},
      {"cat", "Concat"},
      {"Concatenate", "Concat"}};
  const std::string bare = BareName(name);
  const auto found = names.find(bare);
  if (found != names.end()) return Filled(found->second, value);
  const auto alike = std::find_if(names.begin(), names.end(), [&](const auto& item) {
    return Lower(item.first) == Lower(bare);
  });
  return alike == names.end() ? "" : Filled(alike->second, value);
}

std::string MissingOperator(const std::string& name) {
  static constexpr const char* kNone[] = {"Bidirectional", "Transformer", "TransformerEncoder",
                                          "Proposal"};
  const std::string bare = Lower(BareName(name));
  const bool none = std::any_of(std::begin(kNone), std::end(kNone),
                                [&](const char* known) { return Lower(known) == bare; });
  return none ? "not supported yet; `mxtrain ops` lists the operators, and a plug-in can add more"
              : "";
}

std::string ActivationOfOtherTools(const std::string& name) {
  static const std::map<std::string, std::string, std::less<>> lines = {
      {"gelu", "gelu"},
      {"silu", "silu"},
      {"swish", "silu"},
      {"mish", "mish"},
      {"hard_swish", "hard_swish"},
      {"hardswish", "hard_swish"},
      {"elu", "LeakyReLU: {act_type: elu, slope: 1}"},
      {"selu", "LeakyReLU: {act_type: selu}"},
      {"prelu", "LeakyReLU: {act_type: prelu}"},
      {"leaky", "LeakyReLU: {act_type: leaky}"},
      {"leaky_relu", "LeakyReLU: {act_type: leaky}"},
      {"relu6", "clip: {a_min: 0, a_max: 6}"},
      {"hard_sigmoid", "hard_sigmoid"},
      {"softplus", "Activation: {act_type: softrelu}"},
      {"softmax", "SoftmaxOutput"}};
  const auto found = lines.find(Lower(name));
  return found == lines.end() ? "" : found->second;
}

std::string AdviceForOtherTools(const std::string& name) {
  static const std::map<std::string, std::string, std::less<>> advice = {
      {"callbacks",
       "train.early_stop, train.best, train.save and train.lr_schedule replace callbacks"},
      {"label_smoothing",
       "label smoothing is a parameter of the loss layer: - SoftmaxOutput: {smooth_alpha: 0.1}"},
      {"loss",
       "the loss is the last layer of the net: SoftmaxOutput, LogisticRegressionOutput, "
       "LinearRegressionOutput, ..."},
      {"device", "the device is a command line flag: --device cpu, gpu or gpu:N"},
      {"nesterov", "train.optimizer: nag is sgd with Nesterov's momentum"},
      {"ColorJitter", "use the transforms brightness, contrast, saturation and hue"},
      {"color_jitter", "use the transforms brightness, contrast, saturation and hue"},
      {"Rescaling",
       "pixels are always divided by 255; normalize then subtracts a mean and divides by a "
       "standard deviation"},
      {"rescale",
       "pixels are always divided by 255; normalize then subtracts a mean and divides by a "
       "standard deviation"},
      {"ToTensor", "not needed: pixels are always divided by 255 and stored channels first"},
      {"precision",
       "use f1 in training; `mxtrain eval` reports precision and recall of each class"},
      {"recall", "use f1 in training; `mxtrain eval` reports precision and recall of each class"},
      {"activation",
       "add the activation as a layer after this one: - Activation: {act_type: relu}"},
      {"kernel_initializer",
       "use train.initializer, or train.initializers for patterns of parameter names"},
      {"kernel_regularizer",
       "use train.optimizer: {weight_decay: ...}, which is L2 on all weights"},
      {"normalize",
       "images are normalized in data: transforms: [normalize: imagenet]; to divide feature "
       "vectors "
       "by their length, - L2Normalization: {mode: channel}"},
      {"PixelShuffle",
       "- depth_to_space: {block_size: N} moves channels in another order than PyTorch's "
       "PixelShuffle: weights trained there do not fit"},
      {"Input", "net.input is the shape of an example: [channels, height, width]"},
      {"InputLayer", "net.input is the shape of an example: [channels, height, width]"},
      {"ZeroPadding2D", "use `pad` of the next layer"}};
  const auto found = advice.find(name);
  return found == advice.end() ? "" : found->second;
}

std::string CommandOfOtherTools(const std::string& name) {
  static const std::map<std::string, std::string, std::less<>> names = {
      {"fit", "train"},    {"finetune", "train"},   {"resume", "train"},   {"predict", "infer"},
      {"detect", "infer"}, {"classify", "infer"},   {"evaluate", "eval"},  {"val", "eval"},
      {"test", "eval"},    {"validate", "eval"},    {"score", "eval"},     {"summary", "plan"},
      {"time", "bench"},   {"benchmark", "bench"},  {"convert", "export"}, {"list", "runs"},
      {"tune", "sweep"},   {"version", "--version"}};
  const auto found = names.find(name);
  return found == names.end() ? "" : found->second;
}

std::string ParamOfOtherTools(const std::string& name, std::span<const FieldInfo> params) {
  static constexpr std::pair<const char*, const char*> kNames[] = {
      {"num_output", "num_filter"},
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
      {"output_padding", "adj"},
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
    const bool has = std::any_of(params.begin(), params.end(),
                                 [own = own](const FieldInfo& field) { return field.name == own; });
    if (other == name && has) return own;
  }
  return "";
}

}  // namespace mxtrain::config
