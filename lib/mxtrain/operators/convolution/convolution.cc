// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/convolution/convolution.h"

#include "mxtrain/operator/registry.h"
#include "mxtrain/operator/window.h"
#include "mxtrain/operators/convolution/weighted_types.h"

namespace mxtrain {
namespace {

template <typename P>
void DeclareSettings(Fields<P>& f) {
  const TShape empty = TShape::OfRank(0);
  f.Add("kernel", &P::kernel).Required().Help("window, (h, w)");
  f.Add("stride", &P::stride).Default(empty).Help("stride of the window, (h, w); 1 by default");
  f.Add("dilate", &P::dilate).Default(empty).Help("dilation, (h, w); 1 by default");
  f.Add("pad", &P::pad).Default(empty).Help("zero padding on either side, (h, w); 0 by default");
  f.Add("num_filter", &P::num_filter).Required().Range(1).Help("output channels");
  f.Add("num_group", &P::num_group).Default(1).Range(1).Help("number of channel groups");
  f.Add("no_bias", &P::no_bias).Default(false).Help("no bias");
  f.Add("layout", &P::layout)
      .Enum({{"NCW", P::kNCW},
             {"NCHW", P::kNCHW},
             {"NCDHW", P::kNCDHW},
             {"NHWC", P::kNHWC},
             {"NDHWC", P::kNDHWC}})
      .Default(std::nullopt)
      .Help("order of the axes; NCHW is supported");
  f.Ignored("workspace", "scratch memory in MiB; the memory plan computes it exactly");
  f.Ignored("cudnn_tune", "choose the algorithm by measuring");
  f.Ignored("cudnn_off", "use an implementation other than cuDNN's");
}

// Windows of two numbers; relations between parameters. Throws kConfig.
void Validate(const std::string& who, ConvolutionSettings* s) {
  if (s->kernel.ndim() != 2) {
    Throw(
        ErrorKind::kConfig,
        "{}: kernel = {} has {} axes; only 2-D convolution (a kernel of two numbers) is supported",
        who, s->kernel.ToTuple(), s->kernel.ndim());
  }
  if (s->layout && *s->layout != ConvolutionSettings::kNCHW) {
    Throw(ErrorKind::kConfig, "{}: layout must be NCHW; the kernels choose the memory layout", who);
  }
  s->kernel = WindowParam(s->kernel, 2, 1, 1, who, "kernel");
  s->stride = WindowParam(s->stride, 2, 1, 1, who, "stride");
  s->dilate = WindowParam(s->dilate, 2, 1, 1, who, "dilate");
  s->pad = WindowParam(s->pad, 2, 0, 0, who, "pad");
  if (s->num_filter % s->num_group != 0) {
    Throw(ErrorKind::kConfig, "{}: num_filter = {} is not a multiple of num_group = {}", who,
          s->num_filter, s->num_group);
  }
}

struct ConvolutionParam : ConvolutionSettings, Parameter<ConvolutionParam> {
  static void Declare(Fields<ConvolutionParam>& f) { DeclareSettings(f); }
};

struct ConvolutionActivationParam : ConvolutionSettings, Parameter<ConvolutionActivationParam> {
  static void Declare(Fields<ConvolutionActivationParam>& f) {
    DeclareSettings(f);
    Epilogue::Declare(f);
  }
};

template <typename P>
class ConvolutionOf final : public ConvolutionProperty {
 public:
  ConvolutionOf(const char* type, const char* description)
      : type_(type), description_(description) {}

  std::string TypeString() const override { return type_; }
  std::string Description() const override { return description_; }
  void Init(const Kwargs& kwargs) override {
    param_.Init(kwargs, type_);
    Validate(type_, &param_);
  }
  Kwargs GetParams() const override { return param_.ToKwargs(); }
  std::vector<FieldInfo> DescribeParams() const override { return P::Describe(); }
  const ConvolutionSettings& settings() const override { return param_; }

 private:
  const char *type_, *description_;
  P param_;
};

}  // namespace

ConvolutionGeometry::ConvolutionGeometry(const ConvolutionSettings& settings, const TShape& data,
                                         const TShape& output)
    : batch(data[0]), in_channels(data[1]), out_channels(output[1]), groups(settings.num_group) {
  for (int i = 0; i < 2; ++i) {
    in[i] = data[2 + i];
    out[i] = output[2 + i];
    kernel[i] = settings.kernel[i];
    stride[i] = settings.stride[i];
    dilate[i] = settings.dilate[i];
    pad[i] = settings.pad[i];
  }
}

std::vector<std::string> ConvolutionProperty::ListArguments() const {
  std::vector<std::string> names{"data", "weight"};
  if (!settings().no_bias) names.push_back("bias");
  if (settings().with_sum) names.push_back("sum");
  return names;
}

void ConvolutionProperty::InferChannels(TShape* data, TShape* weight) const {
  const int64_t groups = settings().num_group;
  if ((*data)[1] >= 0) {
    if ((*data)[1] % groups != 0) {
      Throw(ErrorKind::kConfig, "{}: data {} has {} channels, not a multiple of num_group = {}",
            TypeString(), data->ToString(), (*data)[1], groups);
    }
    UnifyShape(
        {settings().num_filter, (*data)[1] / groups, settings().kernel[0], settings().kernel[1]},
        weight, TypeString(), "weight");
  } else if ((*weight)[1] >= 0) {
    (*data)[1] = (*weight)[1] * groups;
  }
}

void ConvolutionProperty::InferSpace(const TShape& data, TShape* out) const {
  for (int i = 0; i < 2; ++i) {
    const int64_t size = data[2 + i];
    if (size < 0) continue;
    const int64_t padded = size + 2 * settings().pad[i],
                  window = DilatedSize(settings().kernel[i], settings().dilate[i]);
    if (window > padded) {
      Throw(ErrorKind::kConfig,
            "{}: the kernel {} (dilated: {} cells) exceeds the padded data {} ({} cells) along "
            "axis {}; use a smaller kernel or more pad",
            TypeString(), settings().kernel.ToTuple(), window, data.ToString(), padded, 2 + i);
    }
    TShape spatial = TShape::OfRank(4);
    spatial[2 + i] = (padded - window) / settings().stride[i] + 1;
    UnifyShape(spatial, out, TypeString(), "output");
  }
}

bool ConvolutionProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                     std::vector<TShape>*) const {
  TShape &data = (*in)[kData], &weight = (*in)[kWeight], &output = (*out)[0];
  const std::string who = TypeString();
  if (data.has_rank() && data.ndim() != 4)
    Throw(ErrorKind::kConfig, "{}: data {} must be images [N, C, H, W]", who, data.ToString());
  UnifyShape(TShape::OfRank(4), &data, who, "data");
  UnifyShape({settings().num_filter, TShape::kUnknown, settings().kernel[0], settings().kernel[1]},
             &weight, who, "weight");
  UnifyShape({TShape::kUnknown, settings().num_filter, TShape::kUnknown, TShape::kUnknown}, &output,
             who, "output");
  if (!settings().no_bias) UnifyShape({settings().num_filter}, &(*in)[kBias], who, "bias");

  TShape batch = TShape::OfRank(4);
  batch[0] = data[0];
  UnifyShape(batch, &output, who, "output");
  data[0] = output[0];
  for (int i = 0; i < 2; ++i) {
    // Stride 1 loses nothing, so the output size determines the data size.
    if (data[2 + i] >= 0 || output[2 + i] < 0 || settings().stride[i] != 1) continue;
    data[2 + i] = output[2 + i] - 1 + DilatedSize(settings().kernel[i], settings().dilate[i]) -
                  2 * settings().pad[i];
  }
  InferChannels(&data, &weight);
  InferSpace(data, &output);
  if (settings().with_sum) {
    UnifyShape(in->back(), &output, who, "sum");
    in->back() = output;
  }
  return data.known() && weight.known() && output.known();
}

bool ConvolutionProperty::InferType(std::vector<DType>* in, std::vector<DType>* out,
                                    std::vector<DType>*) const {
  return weighted::InferTypes(*this, !settings().no_bias, in, out);
}

std::vector<int> ConvolutionProperty::DeclareBackwardDependency(const std::vector<int>& out_grad,
                                                                const std::vector<int>& in_data,
                                                                const std::vector<int>&) const {
  return {out_grad[0], in_data[kData], in_data[kWeight]};
}

std::vector<InplacePair> ConvolutionProperty::ForwardInplaceOption() const {
  if (!settings().with_sum) return {};
  return {{static_cast<int>(ListArguments().size()) - 1, 0}};
}

double ConvolutionProperty::ForwardFlops(const std::vector<TShape>& in,
                                         const std::vector<TShape>& out) const {
  return static_cast<double>(out[0].Size()) * static_cast<double>(in[kWeight].Product(1, 4));
}

std::string WhyNotEpilogue(const ConvolutionSettings& settings, const PlanRequest& request) {
  if (settings.act == Epilogue::kNone && !settings.with_sum) return "";
  if (request.needs_backward) return "no gradient with a sum or an activation";
  if (request.out_req[0] == OpReqType::kAddTo) return "no kAddTo with a sum or an activation";
  return "";
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(convolution, registry) {
  using namespace mxtrain;
  const auto plain = ConvolutionProperty::kOperators[0], fused = ConvolutionProperty::kOperators[1];
  registry.AddProperty(plain, {"Convolution_v1"}, [plain] {
    return std::make_unique<ConvolutionOf<ConvolutionParam>>(
        plain, "2-D convolution of images [N, C, H, W]");
  });
  registry.AddProperty(fused, {}, [fused] {
    return std::make_unique<ConvolutionOf<ConvolutionActivationParam>>(
        fused,
        "Convolution, addition and activation in one, for inference (created by the fusion pass)");
  });
  FusePattern in_inference;
  in_inference.for_training = false;
  AddEpiloguePatterns(registry, plain, fused, /*sums=*/true, in_inference);
}
