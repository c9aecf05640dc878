// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/deconvolution/deconvolution.h"

#include <algorithm>

#include "mxtrain/operator/registry.h"
#include "mxtrain/operator/window.h"
#include "mxtrain/operators/convolution/weighted_types.h"

namespace mxtrain {

void DeconvolutionParam::Declare(Fields<DeconvolutionParam>& f) {
  using P = DeconvolutionParam;
  const TShape empty = TShape::OfRank(0);
  DeclareConvolution(f, /*no_bias=*/true, "cells cut off on either side, as kernel; 0 by default");
  f.Add("adj", &P::adj)
      .Default(empty)
      .Help("cells added on the far side, as kernel; less than stride; 0 by default");
  f.Add("target_shape", &P::target_shape)
      .Default(empty)
      .Help("spatial size of the output, as kernel; pad and adj follow from it");
}

void DeconvolutionProperty::Check() {
  const std::string who = TypeString();
  CompleteWindow(who, &param_);
  const int axes = param_.axes();
  const bool sized = std::any_of(param_.target_shape.begin(), param_.target_shape.end(),
                                 [](int64_t n) { return n != 0; });
  param_.target_shape =
      sized ? WindowParam(param_.target_shape, axes, 1, 1, who, "target_shape") : TShape::OfRank(0);
  param_.adj = WindowParam(param_.adj, axes, 0, 0, who, "adj");
  for (int i = 0; i < axes && !sized; ++i) {
    if (param_.adj[i] >= param_.stride[i]) {
      Throw(ErrorKind::kConfig, "{}: adj = {} must be less than stride = {}", who,
            param_.adj.ToTuple(), param_.stride.ToTuple());
    }
  }
}

std::vector<std::string> DeconvolutionProperty::ListArguments() const {
  if (param_.no_bias) return {"data", "weight"};
  return {"data", "weight", "bias"};
}

int64_t DeconvolutionProperty::Whole(int axis, int64_t size) const {
  return param_.stride[axis] * (size - 1) + DilatedSize(param_.kernel[axis], param_.dilate[axis]);
}

ConvolutionSettings DeconvolutionProperty::MirrorOf(const TShape& data) const {
  ConvolutionSettings mirror = param_;
  mirror.num_filter = static_cast<int>(data[1]);
  mirror.no_bias = true;
  if (param_.target_shape.ndim() > 0) {
    for (int i = 0; i < param_.axes(); ++i)
      mirror.pad[i] = (Whole(i, data[2 + i]) - param_.target_shape[i] + 1) / 2;
  }
  return mirror;
}

void DeconvolutionProperty::InferChannels(TShape* data, TShape* weight) const {
  TShape expected = TShape::OfRank(2 + param_.axes());
  expected[0] = (*data)[1];
  expected[1] = param_.num_filter / param_.num_group;
  for (int i = 0; i < param_.axes(); ++i) expected[2 + i] = param_.kernel[i];
  UnifyShape(expected, weight, TypeString(), "weight");
  (*data)[1] = (*weight)[0];
  if ((*data)[1] >= 0 && (*data)[1] % param_.num_group != 0) {
    Throw(ErrorKind::kConfig, "{}: data {} has {} channels, not a multiple of num_group = {}",
          TypeString(), data->ToString(), (*data)[1], param_.num_group);
  }
}

void DeconvolutionProperty::InferSpace(TShape* data, TShape* out) const {
  for (int i = 0; i < param_.axes(); ++i) {
    int64_t& size = (*data)[2 + i];
    const bool sized = param_.target_shape.ndim() > 0;
    if (size < 0 && (*out)[2 + i] >= 0 && !sized) {
      const int64_t steps = (*out)[2 + i] + 2 * param_.pad[i] - param_.adj[i] - Whole(i, 1);
      if (steps >= 0 && steps % param_.stride[i] == 0) size = steps / param_.stride[i] + 1;
    }
    TShape spatial = TShape::OfRank(2 + param_.axes());
    if (sized) {
      spatial[2 + i] = param_.target_shape[i];
      if (size >= 0 && Whole(i, size) < param_.target_shape[i]) {
        Throw(ErrorKind::kConfig,
              "{}: target_shape = {} exceeds the {} cells that data {} give along axis {}",
              TypeString(), param_.target_shape.ToTuple(), Whole(i, size), data->ToString(), 2 + i);
      }
    } else if (size >= 0) {
      spatial[2 + i] = Whole(i, size) - 2 * param_.pad[i] + param_.adj[i];
      if (spatial[2 + i] < 1) {
        Throw(ErrorKind::kConfig,
              "{}: pad = {} leaves nothing of the {} cells that data {} give along axis {}",
              TypeString(), param_.pad.ToTuple(), Whole(i, size), data->ToString(), 2 + i);
      }
    }
    UnifyShape(spatial, out, TypeString(), "output");
  }
}

bool DeconvolutionProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                       std::vector<TShape>*) const {
  TShape &data = (*in)[kData], &weight = (*in)[kWeight], &output = (*out)[0];
  const std::string who = TypeString();
  const TShape unknown = TShape::OfRank(2 + param_.axes());
  CheckImages(data, param_.axes(), who);
  UnifyShape(unknown, &data, who, "data");
  TShape expected = unknown;
  expected[0] = data[0];
  expected[1] = param_.num_filter;
  UnifyShape(expected, &output, who, "output");
  data[0] = output[0];
  if (!param_.no_bias) UnifyShape({param_.num_filter}, &(*in)[kBias], who, "bias");
  InferChannels(&data, &weight);
  InferSpace(&data, &output);
  return data.known() && weight.known() && output.known();
}

bool DeconvolutionProperty::InferType(std::vector<DType>* in, std::vector<DType>* out,
                                      std::vector<DType>*) const {
  return weighted::InferTypes(*this, !param_.no_bias, in, out);
}

std::vector<int> DeconvolutionProperty::DeclareBackwardDependency(const std::vector<int>& out_grad,
                                                                  const std::vector<int>& in_data,
                                                                  const std::vector<int>&) const {
  return {out_grad[0], in_data[kData], in_data[kWeight]};
}

double DeconvolutionProperty::ForwardFlops(const std::vector<TShape>& in,
                                           const std::vector<TShape>&) const {
  return static_cast<double>(in[kData].Size()) *
         static_cast<double>(in[kWeight].Product(1, 2 + param_.axes()));
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(deconvolution, registry) {
  registry.AddProperty("Deconvolution", {},
                       [] { return std::make_unique<mxtrain::DeconvolutionProperty>(); });
}
