// SPDX-License-Identifier: Apache-2.0
#pragma once
// Convolution: cross-correlation of images [N, C, H, W] with filters [O, C / num_group, kh, kw],
// and a bias [O]. The kernel has one, two or three spatial axes, and with them all arrays:
// sequences [N, C, W], images, volumes [N, C, D, H, W].
//
//   out[n, o, y, x] = bias[o] + sum over c, i, j of
//                     data[n, c, y * stride + i * dilate - pad, ...] * weight[o, c, i, j],
// zero outside the image; H' = floor((H + 2 pad - dilate (kh - 1) - 1) / stride) + 1. The padding
// after the data may differ from that before them, which `pad` is here; or `pad` is the word same
// (operator/window.h), and H' = ceil(H / stride).
//
// _ConvolutionActivation, created by the fusion pass for inference, is the same operator with an
// epilogue of an addition and an activation: output = act(Convolution(data) [+ sum]). It has no
// gradient.
//
// _ConvolutionWithBatchNorm, created where batch norms are before or behind it and a library's
// kernels do a part of their work, is the same operator, too. With
// - sums_output it has a second, hidden output, `sums` [2, O]: over each channel of the output, of
//   its elements and of their squares, before or after they are rounded to their type. They have no
//   gradient: it is part of what the batch norm says of the output.
// - gates_gradient the data are ReLU((norm_data - norm_mean) * norm_inverse * norm_gamma +
//   norm_beta), of which Backward gives the gradient of what ReLU is applied to, as that of the
//   data; and over each channel of it, as gradients of norm_mean and norm_inverse [C], its sum and
//   the sum of it times (norm_data - norm_mean) * norm_inverse.
// Sums, and the arrays [C], are float32 for narrow types.
#include "mxtrain/operators/activation/epilogue.h"

namespace mxtrain {

struct ConvolutionSettings : Epilogue {
  enum LayoutWord { kNCW, kNCHW, kNCDHW, kNHWC, kNDHWC };
  TShape kernel, stride, dilate, pad;
  bool same_pad = false;  // then pad depends on the data: ConvolutionProperty::SettingsFor
  int num_filter = 0, num_group = 1;
  bool no_bias = false;
  bool sums_output = false, gates_gradient = false;  // of _ConvolutionWithBatchNorm
  std::optional<int> layout;

  int axes() const { return kernel.ndim(); }  // spatial ones
  // `pad` has an entry per axis or, where the sides differ, those before the data and then those
  // after them.
  bool even_pad() const { return pad.ndim() == axes(); }
  int64_t pad_before(int axis) const {
    MXTRAIN_ASSERT(!same_pad);
    return pad[axis];
  }
  int64_t pad_after(int axis) const {
    MXTRAIN_ASSERT(!same_pad);
    return pad[even_pad() ? axis : axes() + axis];
  }
};

// The numbers of a convolution of given shapes. Arrays of three are (w, 1, 1), (h, w, 1) or
// (d, h, w): an axis of one cell at the end changes no offset.
struct MXTRAIN_API ConvolutionGeometry {
  static constexpr int kAxes = 3;
  int64_t batch, in_channels, out_channels, groups;
  int64_t in[kAxes], out[kAxes], kernel[kAxes], stride[kAxes], dilate[kAxes];
  int64_t pad[kAxes];  // before the data

  ConvolutionGeometry(const ConvolutionSettings& settings, const TShape& data,
                      const TShape& output);
  MXTRAIN_HD int64_t group_in() const { return in_channels / groups; }
  MXTRAIN_HD int64_t group_out() const { return out_channels / groups; }
  MXTRAIN_HD int64_t window() const { return kernel[0] * kernel[1] * kernel[2]; }  // cells
};

// The parameters of a sliding window that Convolution and Deconvolution share, checked and
// completed: one to three spatial axes, an entry for each of them; `sides`: pad may have two.
// Throws kConfig, naming `who`.
MXTRAIN_API void CompleteWindow(const std::string& who, ConvolutionSettings* settings,
                                bool sides = false);
// Throws kConfig unless the data have the rank that a kernel with so many axes needs, or none yet.
MXTRAIN_API void CheckImages(const TShape& data, int axes, const std::string& who);
// The declaration of all parameters of Convolution; `no_bias` is the default of that one,
// `pad_help` what is said of the padding.
template <typename P>
void DeclareConvolution(Fields<P>& f, bool no_bias, const char* pad_help) {
  const TShape empty = TShape::OfRank(0);
  f.Add("kernel", &P::kernel).Required().Help("window: (w), (h, w) or (d, h, w)");
  f.Add("stride", &P::stride).Default(empty).Help("stride of the window, as kernel; 1 by default");
  f.Add("dilate", &P::dilate).Default(empty).Help("dilation, as kernel; 1 by default");
  f.Add("pad", &P::pad).Default(empty).Help(pad_help);
  f.Add("num_filter", &P::num_filter).Required().Range(1).Help("output channels");
  f.Add("num_group", &P::num_group).Default(1).Range(1).Help("number of channel groups");
  f.Add("no_bias", &P::no_bias).Default(no_bias).Help("no bias");
  f.Add("layout", &P::layout)
      .Enum({{"NCW", P::kNCW},
             {"NCHW", P::kNCHW},
             {"NCDHW", P::kNCDHW},
             {"NHWC", P::kNHWC},
             {"NDHWC", P::kNDHWC}})
      .Default(std::nullopt)
      .Help("order of the axes; NCW, NCHW and NCDHW are supported");
  f.Ignored("workspace", "scratch memory in MiB; the memory plan computes it exactly");
  f.Ignored("cudnn_tune", "choose the algorithm by measuring");
  f.Ignored("cudnn_off", "use an implementation other than cuDNN's");
}

// Shared by Convolution, _ConvolutionActivation and _ConvolutionWithBatchNorm: everything except
// the parsing of parameters.
class ConvolutionProperty : public OperatorProperty {
 public:
  enum Argument { kData, kWeight, kBias };  // then a sum, or those of NormArgument
  enum NormArgument : int { kNormData, kNormMean, kNormInverse, kNormGamma, kNormBeta };
  enum Output { kOutput, kSums };
  // Most kernels serve these two.
  static constexpr const char* kOperators[] = {"Convolution", "_ConvolutionActivation"};
  static constexpr const char* kWithBatchNorm = "_ConvolutionWithBatchNorm";

  virtual const ConvolutionSettings& settings() const = 0;
  static int IndexOf(const ConvolutionSettings& settings, NormArgument argument) {
    return kBias + !settings.no_bias + argument;
  }
  // The same with the padding as numbers.
  MXTRAIN_API ConvolutionSettings SettingsFor(const TShape& data) const;

  MixedPrecision mixed_precision() const override { return {MixedPrecision::kGains, 2}; }

  std::vector<std::string> ListArguments() const override;
  std::vector<std::string> ListOutputs() const override;
  int NumVisibleOutputs() const override { return 1; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                 std::vector<DType>* aux) const override;
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>& in_data,
                                             const std::vector<int>& out_data) const override;
  std::vector<InplacePair> ForwardInplaceOption() const override;
  bool HasGradient(int argument) const override;
  double ForwardFlops(const std::vector<TShape>& in, const std::vector<TShape>& out) const override;

 private:
  TShape WeightShape(int64_t group_in) const;
  void InferChannels(TShape* data, TShape* weight) const;
  void InferSpace(const TShape& data, TShape* out) const;
};

// Why a kernel that applies the epilogue in place cannot serve the request, or "".
MXTRAIN_API std::string WhyNotEpilogue(const ConvolutionSettings& settings,
                                       const PlanRequest& request);

}  // namespace mxtrain
