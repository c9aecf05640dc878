#include "mxtrain/operators/convolution/convolution.h"

#include "mxtrain/operator/registry.h"
#include "mxtrain/operator/window.h"
#include "mxtrain/operators/convolution/weighted_types.h"

namespace mxtrain {

void ConvolutionParam::Declare(Fields<ConvolutionParam>& f) {
  using P = ConvolutionParam;
  const TShape empty = TShape::OfRank(0);
  f.Add("kernel", &P::kernel).Required().Help("window, (h, w)");
  f.Add("stride", &P::stride).Default(empty).Help("step of the window, (h, w); 1 by default");
  f.Add("dilate", &P::dilate).Default(empty).Help("distance of neighbouring taps, (h, w); 1 by default");
  f.Add("pad", &P::pad).Default(empty).Help("zeros around the image on either side, (h, w); 0 by default");
  f.Add("num_filter", &P::num_filter).Required().Range(1).Help("output channels");
  f.Add("num_group", &P::num_group).Default(1).Range(1).Help("groups of channels that do not see each other");
  f.Add("no_bias", &P::no_bias).Default(false).Help("leave the bias out");
  f.Add("layout", &P::layout)
      .Enum({{"NCW", kNCW}, {"NCHW", kNCHW}, {"NCDHW", kNCDHW}, {"NHWC", kNHWC}, {"NDHWC", kNDHWC}})
      .Default(std::nullopt)
      .Help("order of the axes; NCHW is supported");
  f.Ignored("workspace", "scratch memory in MiB; the memory plan knows it exactly");
  f.Ignored("cudnn_tune", "choice of the algorithm by measurement");
  f.Ignored("cudnn_off", "another implementation than cuDNN's");
}

ConvolutionGeometry::ConvolutionGeometry(const ConvolutionParam& param, const TShape& data, const TShape& output)
    : batch(data[0]), in_channels(data[1]), out_channels(output[1]), groups(param.num_group) {
  for (int i = 0; i < 2; ++i) {
    in[i] = data[2 + i];
    out[i] = output[2 + i];
    kernel[i] = param.kernel[i];
    stride[i] = param.stride[i];
    dilate[i] = param.dilate[i];
    pad[i] = param.pad[i];
  }
}

void ConvolutionProperty::Check() {
  const std::string who = TypeString();
  if (param_.kernel.ndim() != 2) {
    Throw(ErrorKind::kConfig, "{}: kernel = {} has {} axes; 2-D convolution (a kernel of two numbers) is supported", who,
          param_.kernel.ToTuple(), param_.kernel.ndim());
  }
  if (param_.layout && *param_.layout != ConvolutionParam::kNCHW) {
    Throw(ErrorKind::kConfig, "{}: layout must be NCHW; how arrays lie in memory is chosen by the kernels", who);
  }
  param_.kernel = WindowParam(param_.kernel, 2, 1, 1, who, "kernel");
  param_.stride = WindowParam(param_.stride, 2, 1, 1, who, "stride");
  param_.dilate = WindowParam(param_.dilate, 2, 1, 1, who, "dilate");
  param_.pad = WindowParam(param_.pad, 2, 0, 0, who, "pad");
  if (param_.num_filter % param_.num_group != 0) {
    Throw(ErrorKind::kConfig, "{}: num_filter = {} is no multiple of num_group = {}", who, param_.num_filter, param_.num_group);
  }
}

std::vector<std::string> ConvolutionProperty::ListArguments() const {
  if (param_.no_bias) return {"data", "weight"};
  return {"data", "weight", "bias"};
}

void ConvolutionProperty::InferChannels(TShape* data, TShape* weight) const {
  const int64_t groups = param_.num_group;
  if ((*data)[1] >= 0) {
    if ((*data)[1] % groups != 0) {
      Throw(ErrorKind::kConfig, "{}: data {} has {} channels, no multiple of num_group = {}", TypeString(), data->ToString(), (*data)[1],
            groups);
    }
    UnifyShape({param_.num_filter, (*data)[1] / groups, param_.kernel[0], param_.kernel[1]}, weight, TypeString(), "weight");
  } else if ((*weight)[1] >= 0) {
    (*data)[1] = (*weight)[1] * groups;
  }
}

void ConvolutionProperty::InferSpace(const TShape& data, TShape* out) const {
  for (int i = 0; i < 2; ++i) {
    const int64_t size = data[2 + i];
    if (size < 0) continue;
    const int64_t padded = size + 2 * param_.pad[i], window = DilatedSize(param_.kernel[i], param_.dilate[i]);
    if (window > padded) {
      Throw(ErrorKind::kConfig,
            "{}: the kernel {} (dilated: {} cells) exceeds the padded data {} ({} cells) along axis {}; use a smaller kernel or more pad",
            TypeString(), param_.kernel.ToTuple(), window, data.ToString(), padded, 2 + i);
    }
    TShape spatial = TShape::OfRank(4);
    spatial[2 + i] = (padded - window) / param_.stride[i] + 1;
    UnifyShape(spatial, out, TypeString(), "output");
  }
}

bool ConvolutionProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out, std::vector<TShape>*) const {
  TShape &data = (*in)[kData], &weight = (*in)[kWeight], &output = (*out)[0];
  const std::string who = TypeString();
  if (data.has_rank() && data.ndim() != 4) Throw(ErrorKind::kConfig, "{}: data {} must be images [N, C, H, W]", who, data.ToString());
  UnifyShape(TShape::OfRank(4), &data, who, "data");
  UnifyShape({param_.num_filter, TShape::kUnknown, param_.kernel[0], param_.kernel[1]}, &weight, who, "weight");
  UnifyShape({TShape::kUnknown, param_.num_filter, TShape::kUnknown, TShape::kUnknown}, &output, who, "output");
  if (!param_.no_bias) UnifyShape({param_.num_filter}, &(*in)[kBias], who, "bias");

  TShape batch = TShape::OfRank(4);
  batch[0] = data[0];
  UnifyShape(batch, &output, who, "output");
  data[0] = output[0];
  for (int i = 0; i < 2; ++i) {
    // A step of one loses nothing, so the size of the output tells that of the data.
    if (data[2 + i] >= 0 || output[2 + i] < 0 || param_.stride[i] != 1) continue;
    data[2 + i] = output[2 + i] - 1 + DilatedSize(param_.kernel[i], param_.dilate[i]) - 2 * param_.pad[i];
  }
  InferChannels(&data, &weight);
  InferSpace(data, &output);
  return data.known() && weight.known() && output.known();
}

bool ConvolutionProperty::InferType(std::vector<DType>* in, std::vector<DType>* out, std::vector<DType>*) const {
  return weighted::InferTypes(*this, in, out);
}

std::vector<int> ConvolutionProperty::DeclareBackwardDependency(const std::vector<int>& out_grad, const std::vector<int>& in_data,
                                                                const std::vector<int>&) const {
  return {out_grad[0], in_data[kData], in_data[kWeight]};
}

double ConvolutionProperty::ForwardFlops(const std::vector<TShape>& in, const std::vector<TShape>& out) const {
  return static_cast<double>(out[0].Size()) * static_cast<double>(in[kWeight].Product(1, 4));
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(convolution, registry) {
  registry.AddProperty("Convolution", {"Convolution_v1"}, [] { return std::make_unique<mxtrain::ConvolutionProperty>(); });
}
