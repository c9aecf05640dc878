// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/upsampling/upsampling.h"

#include "mxtrain/operator/images.h"
#include "mxtrain/operator/most_arguments.h"
#include "mxtrain/operator/registry.h"

namespace mxtrain {

void UpSamplingParam::Declare(Fields<UpSamplingParam>& f) {
  using P = UpSamplingParam;
  f.Add("scale", &P::scale).Required().Range(1, 1000).Help("factor of height and width");
  f.Add("num_filter", &P::num_filter)
      .Default(0)
      .Range(0, 100000)
      .Help("bilinear: number of channels; 0: that of the data");
  f.Add("sample_type", &P::sample_type)
      .Enum({{"nearest", kNearest}, {"bilinear", kBilinear}})
      .Required()
      .Help("nearest repeats elements; bilinear is a transposed convolution with a weight");
  f.Add("multi_input_mode", &P::multi_input_mode)
      .Enum({{"concat", kConcat}, {"sum", kSum}})
      .Default(kConcat)
      .Help("nearest with several inputs: join them along the channels, or add them");
  f.Add("num_args", &P::num_args)
      .Required()
      .Range(1, kMostArguments)
      .Help("number of inputs; bilinear always has data and weight");
  f.Ignored("workspace", "MXNet's scratch size");
}

std::vector<std::string> UpSamplingProperty::ListArguments() const {
  if (bilinear()) return {"data", "weight"};
  return NumberedNames("arg", param_.num_args);
}

void UpSamplingProperty::InferWeight(TShape* data, TShape* weight) const {
  constexpr int64_t kUnknown = TShape::kUnknown;
  if (param_.num_filter > 0) {
    if ((*data)[1] != kUnknown && (*data)[1] != param_.num_filter) {
      Throw(ErrorKind::kConfig, "{}: data {} have {} channels, but num_filter = {}", TypeString(),
            data->ToString(), (*data)[1], param_.num_filter);
    }
    (*data)[1] = param_.num_filter;
  }
  const int64_t kernel = 2 * param_.scale - param_.scale % 2;
  TShape expected{(*data)[1], 1, kernel, kernel};
  UnifyShape(*weight, &expected, TypeString(), "weight");
  *weight = expected;
  (*data)[1] = expected[0];
}

void UpSamplingProperty::InferSizes(std::vector<TShape>* in, TShape* output) const {
  constexpr int64_t kUnknown = TShape::kUnknown;
  const std::vector<std::string> names = ListArguments();
  TShape& data = in->front();
  for (int axis = 2; axis < 4; ++axis) {
    int64_t& target = (*output)[axis];
    if (data[axis] == kUnknown && target != kUnknown && target % param_.scale == 0)
      data[axis] = target / param_.scale;
    if (data[axis] == kUnknown) continue;
    TShape expected = TShape::OfRank(4);
    expected[axis] = data[axis] * param_.scale;
    UnifyShape(expected, output, TypeString(), "output");
    if (bilinear()) continue;
    for (size_t i = 1; i < in->size(); ++i) {
      const int64_t length = (*in)[i][axis];
      if (length == kUnknown || length == target) continue;
      if (length > 0 && target > 0 && target % length == 0) continue;
      Throw(ErrorKind::kConfig,
            "{}: {} {} cannot be enlarged to the output's length {} along axis {}; it must be a "
            "multiple of {}",
            TypeString(), names[i], (*in)[i].ToString(), target, axis, length);
    }
  }
}

void UpSamplingProperty::InferChannels(std::vector<TShape>* in, TShape* output) const {
  constexpr int64_t kUnknown = TShape::kUnknown;
  const std::vector<std::string> names = ListArguments();
  const bool equal = param_.multi_input_mode == UpSamplingParam::kSum || in->size() == 1;
  // What inputs and output have in common.
  const auto common_part = [&](const TShape& shape) {
    return TShape{shape[0], equal ? shape[1] : kUnknown, kUnknown, kUnknown};
  };
  TShape common = common_part(*output);
  for (size_t i = 0; i < in->size(); ++i)
    UnifyShape(common_part((*in)[i]), &common, TypeString(), names[i]);
  int64_t channels = 0;
  for (TShape& shape : *in) {
    UnifyShape(common, &shape, TypeString(), "input");
    channels = channels == kUnknown || shape[1] == kUnknown ? kUnknown : channels + shape[1];
  }
  if (!equal) common[1] = channels;
  UnifyShape(common, output, TypeString(), "output");
}

bool UpSamplingProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                    std::vector<TShape>*) const {
  constexpr int64_t kUnknown = TShape::kUnknown;
  const std::vector<std::string> names = ListArguments();
  TShape& output = (*out)[0];
  UnifyImages(&output, TypeString(), "output");
  for (size_t i = 0; i < in->size(); ++i) {
    if (!bilinear() || i == 0) UnifyImages(&(*in)[i], TypeString(), names[i]);
  }
  if (bilinear()) {
    TShape& data = (*in)[0];
    UnifyShape(TShape{output[0], output[1], kUnknown, kUnknown}, &data, TypeString(), "output");
    InferWeight(&data, &(*in)[1]);
    UnifyShape(TShape{data[0], data[1], kUnknown, kUnknown}, &output, TypeString(), "output");
  } else {
    InferChannels(in, &output);
  }
  InferSizes(in, &output);
  bool known = output.known();
  for (const TShape& shape : *in) known = known && shape.known();
  return known;
}

std::vector<int> UpSamplingProperty::DeclareBackwardDependency(const std::vector<int>& out_grad,
                                                               const std::vector<int>& in_data,
                                                               const std::vector<int>&) const {
  if (bilinear()) return {out_grad[0], in_data[0], in_data[1]};
  return {out_grad[0]};
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(upsampling, registry) {
  registry.AddProperty("UpSampling", {},
                       [] { return std::make_unique<mxtrain::UpSamplingProperty>(); });
}
