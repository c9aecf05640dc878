// SPDX-License-Identifier: Apache-2.0
#pragma once
// Deconvolution: transposed convolution of sequences, images or volumes, the gradient of
// Convolution with respect to its data (Zeiler et al., "Deconvolutional networks", CVPR 2010). data
// [N, C, ...], weight [C, num_filter / num_group, k...], bias [num_filter]:
//
//   out[n, o, x stride + i dilate - pad, ...] += data[n, c, x, ...] * weight[c, o, i, ...].
//
// Size along an axis: stride (x - 1) + dilate (k - 1) + 1 - 2 pad + adj. With target_shape that is
// the size, and pad and adj follow: of the t cells that are too many, pad removes (t + 1) / 2 on
// the near side and the rest on the far side.
#include "mxtrain/operators/convolution/convolution.h"

namespace mxtrain {

struct DeconvolutionParam : ConvolutionSettings, Parameter<DeconvolutionParam> {
  TShape adj, target_shape;  // as many entries as the kernel; target_shape may be empty
  static void Declare(Fields<DeconvolutionParam>& f);
};

class DeconvolutionProperty final : public PropertyWithParam<DeconvolutionParam> {
 public:
  enum Argument { kData, kWeight, kBias };

  std::string TypeString() const override { return "Deconvolution"; }
  std::string Description() const override {
    return "transposed convolution of sequences, images or volumes";
  }
  MixedPrecision mixed_precision() const override { return {MixedPrecision::kGains, 2}; }
  std::vector<std::string> ListArguments() const override;
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                 std::vector<DType>* aux) const override;
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>& in_data,
                                             const std::vector<int>& out_data) const override;
  double ForwardFlops(const std::vector<TShape>& in, const std::vector<TShape>& out) const override;

  // The convolution, without bias, that takes the output to the data, which have this shape: its
  // gradients are this operator, and the other way round.
  MXTRAIN_API ConvolutionSettings MirrorOf(const TShape& data) const;

 protected:
  void Check() override;

 private:
  // Cells along an axis before anything is cut off.
  int64_t Whole(int axis, int64_t size) const;
  void InferChannels(TShape* data, TShape* weight) const;
  void InferSpace(TShape* data, TShape* out) const;
};

}  // namespace mxtrain
