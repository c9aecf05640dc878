#pragma once
// Convolution: cross-correlation of images [N, C, H, W] with filters [O, C / num_group, kh, kw], and a bias [O].
//
// out[n, o, y, x] = bias[o] + sum over c, i, j of data[n, c, y * stride + i * dilate - pad, ...] * weight[o, c, i, j], zero outside the
// image; H' = floor((H + 2 pad - dilate (kh - 1) - 1) / stride) + 1.
#include "mxtrain/operator/property.h"

namespace mxtrain {

struct ConvolutionParam : Parameter<ConvolutionParam> {
  enum LayoutWord { kNCW, kNCHW, kNCDHW, kNHWC, kNDHWC };
  TShape kernel, stride, dilate, pad;
  int num_filter, num_group;
  bool no_bias;
  std::optional<int> layout;
  static void Declare(Fields<ConvolutionParam>& f);
};

// A convolution of given shapes in numbers; arrays of two are (h, w).
struct ConvolutionGeometry {
  int64_t batch, in_channels, out_channels, groups;
  int64_t in[2], out[2], kernel[2], stride[2], dilate[2], pad[2];

  ConvolutionGeometry(const ConvolutionParam& param, const TShape& data, const TShape& output);
  int64_t group_in() const { return in_channels / groups; }
  int64_t group_out() const { return out_channels / groups; }
};

class ConvolutionProperty final : public PropertyWithParam<ConvolutionParam> {
 public:
  enum Argument { kData, kWeight, kBias };

  std::string TypeString() const override { return "Convolution"; }
  std::string Description() const override { return "2-D convolution of images [N, C, H, W]"; }
  std::vector<std::string> ListArguments() const override;
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out, std::vector<TShape>* aux) const override;
  bool InferType(std::vector<DType>* in, std::vector<DType>* out, std::vector<DType>* aux) const override;
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad, const std::vector<int>& in_data,
                                             const std::vector<int>& out_data) const override;
  double ForwardFlops(const std::vector<TShape>& in, const std::vector<TShape>& out) const override;

 protected:
  void Check() override;

 private:
  void InferChannels(TShape* data, TShape* weight) const;
  void InferSpace(const TShape& data, TShape* out) const;
};

}  // namespace mxtrain
