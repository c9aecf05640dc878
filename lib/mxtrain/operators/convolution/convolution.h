// SPDX-License-Identifier: Apache-2.0
#pragma once
// Convolution: cross-correlation of images [N, C, H, W] with filters [O, C / num_group, kh, kw],
// and a bias [O].
//
//   out[n, o, y, x] = bias[o] + sum over c, i, j of
//                     data[n, c, y * stride + i * dilate - pad, ...] * weight[o, c, i, j],
// zero outside the image; H' = floor((H + 2 pad - dilate (kh - 1) - 1) / stride) + 1.
//
// _ConvolutionActivation, created by the fusion pass for inference, is the same operator with an
// epilogue of an addition and an activation: output = act(Convolution(data) [+ sum]). It has no
// gradient.
#include "mxtrain/operators/activation/epilogue.h"

namespace mxtrain {

struct ConvolutionSettings : Epilogue {
  enum LayoutWord { kNCW, kNCHW, kNCDHW, kNHWC, kNDHWC };
  TShape kernel, stride, dilate, pad;
  int num_filter = 0, num_group = 1;
  bool no_bias = false;
  std::optional<int> layout;
};

// The numbers of a convolution of given shapes; arrays of two are (h, w).
struct MXTRAIN_API ConvolutionGeometry {
  int64_t batch, in_channels, out_channels, groups;
  int64_t in[2], out[2], kernel[2], stride[2], dilate[2], pad[2];

  ConvolutionGeometry(const ConvolutionSettings& settings, const TShape& data,
                      const TShape& output);
  MXTRAIN_HD int64_t group_in() const { return in_channels / groups; }
  MXTRAIN_HD int64_t group_out() const { return out_channels / groups; }
};

// Shared by Convolution and _ConvolutionActivation: everything except the parsing of parameters.
class ConvolutionProperty : public OperatorProperty {
 public:
  enum Argument { kData, kWeight, kBias };  // the sum comes last
  // Kernels serve both operators.
  static constexpr const char* kOperators[] = {"Convolution", "_ConvolutionActivation"};

  virtual const ConvolutionSettings& settings() const = 0;

  MixedPrecision mixed_precision() const override { return {MixedPrecision::kGains, 2}; }

  std::vector<std::string> ListArguments() const override;
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                 std::vector<DType>* aux) const override;
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>& in_data,
                                             const std::vector<int>& out_data) const override;
  std::vector<InplacePair> ForwardInplaceOption() const override;
  double ForwardFlops(const std::vector<TShape>& in, const std::vector<TShape>& out) const override;

 private:
  void InferChannels(TShape* data, TShape* weight) const;
  void InferSpace(const TShape& data, TShape* out) const;
};

// Why a kernel that applies the epilogue in place cannot serve the request, or "".
MXTRAIN_API std::string WhyNotEpilogue(const ConvolutionSettings& settings,
                                       const PlanRequest& request);

}  // namespace mxtrain
