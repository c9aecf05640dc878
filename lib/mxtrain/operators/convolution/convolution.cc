// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/convolution/convolution.h"

#include <algorithm>
#include <utility>

#include "mxtrain/operator/registry.h"
#include "mxtrain/operator/window.h"
#include "mxtrain/operators/convolution/weighted_types.h"

namespace mxtrain {
namespace {

constexpr const char* kPadHelp =
    "zero padding on either side, as kernel, or that before and then that after the data; same: as "
    "much as gives ceil(size / stride) windows, like TensorFlow; 0 by default";

struct ConvolutionParam : ConvolutionSettings, Parameter<ConvolutionParam> {
  static void Declare(Fields<ConvolutionParam>& f) {
    DeclareConvolution(f, /*no_bias=*/false, kPadHelp);
  }
};

struct ConvolutionActivationParam : ConvolutionSettings, Parameter<ConvolutionActivationParam> {
  static void Declare(Fields<ConvolutionActivationParam>& f) {
    DeclareConvolution(f, /*no_bias=*/false, kPadHelp);
    Epilogue::Declare(f);
  }
};

struct ConvolutionWithBatchNormParam : ConvolutionSettings,
                                       Parameter<ConvolutionWithBatchNormParam> {
  static void Declare(Fields<ConvolutionWithBatchNormParam>& f) {
    using P = ConvolutionWithBatchNormParam;
    DeclareConvolution(f, /*no_bias=*/false, kPadHelp);
    f.Add("sums_output", &P::sums_output)
        .Default(false)
        .Help("a second output: the sums of each output channel and of its squares");
    f.Add("gates_gradient", &P::gates_gradient)
        .Default(false)
        .Help("the gradient is that of what ReLU and a batch norm made the data from");
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
    Kwargs given = kwargs;
    param_.same_pad = TakeSamePad(&given);
    param_.Init(given, type_);
    CompleteWindow(type_, &param_, /*sides=*/true);
  }
  Kwargs GetParams() const override {
    return param_.same_pad ? WithSamePad(param_.ToKwargs()) : param_.ToKwargs();
  }
  std::vector<FieldInfo> DescribeParams() const override {
    return WithSamePadAsChoice(P::Describe());
  }
  const ConvolutionSettings& settings() const override { return param_; }

 private:
  const char *type_, *description_;
  P param_;
};

}  // namespace

// Equal sides are written as in MXNet.
static void MergeEqualSides(ConvolutionSettings* s) {
  if (s->even_pad()) return;
  const int64_t* const after = s->pad.begin() + s->axes();
  if (std::equal(s->pad.begin(), after, after))
    s->pad = TShape(std::span(s->pad.begin(), static_cast<size_t>(s->axes())));
}

ConvolutionSettings ConvolutionProperty::SettingsFor(const TShape& data) const {
  ConvolutionSettings s = settings();
  if (!std::exchange(s.same_pad, false)) return s;
  s.pad = TShape::OfRank(2 * s.axes());
  for (int i = 0; i < s.axes(); ++i) {
    const Padding pad =
        SamePadding(data[2 + i], DilatedSize(s.kernel[i], s.dilate[i]), s.stride[i]);
    s.pad[i] = pad.before;
    s.pad[s.axes() + i] = pad.after;
  }
  MergeEqualSides(&s);
  return s;
}

void CheckImages(const TShape& data, int axes, const std::string& who) {
  static constexpr const char* kWords[] = {"sequences [N, C, W]", "images [N, C, H, W]",
                                           "volumes [N, C, D, H, W]"};
  if (!data.has_rank() || data.ndim() == 2 + axes) return;
  Throw(ErrorKind::kConfig, "{}: data {} must be {} for a kernel with {} {}", who, data.ToString(),
        kWords[axes - 1], axes, axes == 1 ? "axis" : "axes");
}

void CompleteWindow(const std::string& who, ConvolutionSettings* s, bool sides) {
  const int axes = s->axes();
  if (axes < 1 || axes > ConvolutionGeometry::kAxes) {
    Throw(ErrorKind::kConfig,
          "{}: kernel = {} has {} axes; expected one to three: (w), (h, w) or "
          "(d, h, w)",
          who, s->kernel.ToTuple(), axes);
  }
  static constexpr const char* kLayouts[] = {"NCW", "NCHW", "NCDHW"};
  if (s->layout && *s->layout != axes - 1) {
    Throw(ErrorKind::kConfig,
          "{}: layout must be {} for a kernel with {} axes; the kernels choose the memory layout",
          who, kLayouts[axes - 1], axes);
  }
  s->kernel = WindowParam(s->kernel, axes, 1, 1, who, "kernel");
  s->stride = WindowParam(s->stride, axes, 1, 1, who, "stride");
  s->dilate = WindowParam(s->dilate, axes, 1, 1, who, "dilate");
  const bool two_each = sides && s->pad.ndim() == 2 * axes;
  s->pad = WindowParam(s->pad, two_each ? 2 * axes : axes, 0, 0, who, "pad");
  MergeEqualSides(s);
  if (s->num_filter % s->num_group != 0) {
    Throw(ErrorKind::kConfig, "{}: num_filter = {} is not a multiple of num_group = {}", who,
          s->num_filter, s->num_group);
  }
}

ConvolutionGeometry::ConvolutionGeometry(const ConvolutionSettings& settings, const TShape& data,
                                         const TShape& output)
    : batch(data[0]), in_channels(data[1]), out_channels(output[1]), groups(settings.num_group) {
  for (int i = 0; i < kAxes; ++i) {
    const bool real = i < settings.axes();
    in[i] = real ? data[2 + i] : 1;
    out[i] = real ? output[2 + i] : 1;
    kernel[i] = real ? settings.kernel[i] : 1;
    stride[i] = real ? settings.stride[i] : 1;
    dilate[i] = real ? settings.dilate[i] : 1;
    pad[i] = real ? settings.pad_before(i) : 0;
  }
}

std::vector<std::string> ConvolutionProperty::ListArguments() const {
  std::vector<std::string> names{"data", "weight"};
  if (!settings().no_bias) names.push_back("bias");
  if (settings().with_sum) names.push_back("sum");
  if (settings().gates_gradient)
    names.insert(names.end(),
                 {"norm_data", "norm_mean", "norm_inverse", "norm_gamma", "norm_beta"});
  return names;
}

std::vector<std::string> ConvolutionProperty::ListOutputs() const {
  if (settings().sums_output) return {"output", "sums"};
  return {"output"};
}

TShape ConvolutionProperty::WeightShape(int64_t group_in) const {
  TShape shape = TShape::OfRank(2 + settings().axes());
  shape[0] = settings().num_filter;
  shape[1] = group_in;
  for (int i = 0; i < settings().axes(); ++i) shape[2 + i] = settings().kernel[i];
  return shape;
}

void ConvolutionProperty::InferChannels(TShape* data, TShape* weight) const {
  const int64_t groups = settings().num_group;
  if ((*data)[1] >= 0) {
    if ((*data)[1] % groups != 0) {
      Throw(ErrorKind::kConfig, "{}: data {} has {} channels, not a multiple of num_group = {}",
            TypeString(), data->ToString(), (*data)[1], groups);
    }
    UnifyShape(WeightShape((*data)[1] / groups), weight, TypeString(), "weight");
  } else if ((*weight)[1] >= 0) {
    (*data)[1] = (*weight)[1] * groups;
  }
}

void ConvolutionProperty::InferSpace(const TShape& data, TShape* out) const {
  for (int i = 0; i < settings().axes(); ++i) {
    const int64_t size = data[2 + i], stride = settings().stride[i];
    if (size < 0) continue;
    TShape spatial = TShape::OfRank(2 + settings().axes());
    if (settings().same_pad) {
      spatial[2 + i] = CeilDivide(size, stride);
      UnifyShape(spatial, out, TypeString(), "output");
      continue;
    }
    const int64_t padded = size + settings().pad_before(i) + settings().pad_after(i),
                  window = DilatedSize(settings().kernel[i], settings().dilate[i]);
    if (window > padded) {
      Throw(ErrorKind::kConfig,
            "{}: the kernel {} (dilated: {} cells) exceeds the padded data {} ({} cells) along "
            "axis {}; use a smaller kernel or more pad",
            TypeString(), settings().kernel.ToTuple(), window, data.ToString(), padded, 2 + i);
    }
    spatial[2 + i] = (padded - window) / stride + 1;
    UnifyShape(spatial, out, TypeString(), "output");
  }
}

bool ConvolutionProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                     std::vector<TShape>*) const {
  TShape &data = (*in)[kData], &weight = (*in)[kWeight], &output = (*out)[kOutput];
  const std::string who = TypeString();
  const int axes = settings().axes();
  CheckImages(data, axes, who);
  const TShape unknown = TShape::OfRank(2 + axes);
  UnifyShape(unknown, &data, who, "data");
  UnifyShape(WeightShape(TShape::kUnknown), &weight, who, "weight");
  TShape expected = unknown;
  expected[1] = settings().num_filter;
  UnifyShape(expected, &output, who, "output");
  if (!settings().no_bias) UnifyShape({settings().num_filter}, &(*in)[kBias], who, "bias");
  if (settings().sums_output) UnifyShape({2, settings().num_filter}, &(*out)[kSums], who, "sums");

  TShape batch = unknown;
  batch[0] = data[0];
  UnifyShape(batch, &output, who, "output");
  data[0] = output[0];
  for (int i = 0; i < axes; ++i) {
    // Stride 1 loses nothing, so the output size determines the data size.
    if (data[2 + i] >= 0 || output[2 + i] < 0 || settings().stride[i] != 1) continue;
    data[2 + i] = output[2 + i];
    if (settings().same_pad) continue;
    data[2 + i] += DilatedSize(settings().kernel[i], settings().dilate[i]) - 1 -
                   settings().pad_before(i) - settings().pad_after(i);
  }
  InferChannels(&data, &weight);
  InferSpace(data, &output);
  if (settings().gates_gradient) {
    const auto norm = [&](NormArgument i) { return &(*in)[IndexOf(settings(), i)]; };
    UnifyShape(data, norm(kNormData), who, "norm_data");
    for (const NormArgument i : {kNormMean, kNormInverse, kNormGamma, kNormBeta})
      UnifyShape({data[1]}, norm(i), who, "statistics and parameters of the batch norm");
  }
  if (settings().with_sum) {
    UnifyShape(in->back(), &output, who, "sum");
    in->back() = output;
  }
  return data.known() && weight.known() && output.known();
}

bool ConvolutionProperty::InferType(std::vector<DType>* in, std::vector<DType>* out,
                                    std::vector<DType>*) const {
  const auto layer = in->begin() + kBias + !settings().no_bias + settings().with_sum;
  std::vector<DType> layer_in(in->begin(), layer), layer_out{(*out)[kOutput]};
  const bool known = weighted::InferTypes(*this, !settings().no_bias, &layer_in, &layer_out);
  std::copy(layer_in.begin(), layer_in.end(), in->begin());
  (*out)[kOutput] = layer_out[0];
  if (!known) return false;
  const DType type = layer_out[0], wide = type == DType::kFloat64 ? type : DType::kFloat32;
  const auto set = [&](DType* at, DType wanted, const char* what) {
    UnifyType(wanted, at, TypeString(), format("{} of {} data", what, NameOf(type)));
  };
  if (settings().sums_output) set(&(*out)[kSums], wide, "sums");
  for (auto at = layer; at != in->end(); ++at) set(&*at, at == layer ? type : wide, "batch norm");
  return true;
}

std::vector<int> ConvolutionProperty::DeclareBackwardDependency(const std::vector<int>& out_grad,
                                                                const std::vector<int>& in_data,
                                                                const std::vector<int>&) const {
  std::vector<int> reads{out_grad[kOutput], in_data[kData], in_data[kWeight]};
  if (settings().gates_gradient)
    reads.insert(reads.end(), in_data.begin() + IndexOf(settings(), kNormData), in_data.end());
  return reads;
}

bool ConvolutionProperty::HasGradient(int argument) const {
  if (!settings().gates_gradient) return true;
  const auto norm = static_cast<NormArgument>(argument - IndexOf(settings(), kNormData));
  return norm < kNormData || norm == kNormMean || norm == kNormInverse;
}

std::vector<InplacePair> ConvolutionProperty::ForwardInplaceOption() const {
  if (!settings().with_sum) return {};
  return {{static_cast<int>(ListArguments().size()) - 1, 0}};
}

double ConvolutionProperty::ForwardFlops(const std::vector<TShape>& in,
                                         const std::vector<TShape>& out) const {
  return static_cast<double>(out[0].Size()) *
         static_cast<double>(in[kWeight].Product(1, 2 + settings().axes()));
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
        plain,
        "convolution of sequences [N, C, W], images [N, C, H, W] or volumes [N, C, D, H, W]");
  });
  registry.AddProperty(fused, {}, [fused] {
    return std::make_unique<ConvolutionOf<ConvolutionActivationParam>>(
        fused,
        "Convolution, addition and activation in one, for inference (created by the fusion pass)");
  });
  const auto with_batch_norm = ConvolutionProperty::kWithBatchNorm;
  registry.AddProperty(with_batch_norm, {}, [with_batch_norm] {
    return std::make_unique<ConvolutionOf<ConvolutionWithBatchNormParam>>(
        with_batch_norm,
        "Convolution with a part of the work of batch norms before and behind it (created by the "
        "fusion pass)");
  });
  FusePattern in_inference;
  in_inference.for_training = false;
  AddEpiloguePatterns(registry, plain, fused, /*sums=*/true, /*self_gated=*/false, in_inference);
}
