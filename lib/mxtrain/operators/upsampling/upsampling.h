// SPDX-License-Identifier: Apache-2.0
#pragma once
// UpSampling: images [N, C, H, W] enlarged `scale` times.
//
// nearest: repeats every element. Several inputs are all enlarged to the size of the first one's
// result, by whole factors, and concatenated along the channels or added.
//
// bilinear: a transposed convolution of every channel by its own kernel, weight [C, 1, k, k], with
// k = 2 scale - scale % 2, stride = scale and padding = ceil((scale - 1) / 2). The weight is a
// parameter with a gradient; the initializer "bilinear", which it has by default, interpolates.
#include "mxtrain/operator/property.h"

namespace mxtrain {

struct UpSamplingParam : Parameter<UpSamplingParam> {
  enum SampleType { kNearest, kBilinear };
  enum InputMode { kConcat, kSum };
  int scale, num_filter, sample_type, multi_input_mode, num_args;
  static void Declare(Fields<UpSamplingParam>& f);
};

class UpSamplingProperty final : public PropertyWithParam<UpSamplingParam> {
 public:
  std::string TypeString() const override { return "UpSampling"; }
  std::string Description() const override {
    return "enlarges images by repeating elements or by interpolation with a weight";
  }
  // bilinear: data and weight, whatever num_args is.
  std::string NumArgsKey() const override { return "num_args"; }
  std::vector<std::string> ListArguments() const override;
  std::string DefaultInit(int argument) const override {
    return bilinear() && argument == 1 ? R"(["bilinear", {}])" : "";
  }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>& in_data,
                                             const std::vector<int>& out_data) const override;

 private:
  bool bilinear() const { return param_.sample_type == UpSamplingParam::kBilinear; }
  void InferWeight(TShape* data, TShape* weight) const;
  // Along the two axes of the images.
  void InferSizes(std::vector<TShape>* in, TShape* output) const;
  // Of nearest: along axes 0 and 1.
  void InferChannels(std::vector<TShape>* in, TShape* output) const;
};

}  // namespace mxtrain
