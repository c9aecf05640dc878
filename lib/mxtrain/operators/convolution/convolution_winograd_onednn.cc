// SPDX-License-Identifier: Apache-2.0
// 3x3 convolution by Winograd's method under Math::kFast: the forward pass and the gradient of the
// data by winograd.h, the gradient of the weights by oneDNN. In training the weights are packed in
// each pass, from their canonical layout; in inference they are prepacked.
#include <algorithm>

#include "mxtrain/base/math.h"
#include "mxtrain/device/cpu/parallel.h"
#include "mxtrain/operator/identity.h"
#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/convolution/convolution.h"
#include "mxtrain/operators/convolution/weighted_layer.h"
#include "mxtrain/operators/convolution/winograd.h"

namespace mxtrain {
namespace {

using onednn::Arg;
using weighted::Wanted;
using P = ConvolutionProperty;

int64_t Aligned(int64_t bytes) {
  return RoundUp(bytes, kBufferAlignment);
}

// The decisions of a plan.
struct Setup {
  winograd::Pass forward, backward;
  Wanted wanted;
  weighted::Arguments arguments;
  float low, high;      // bounds of the result
  bool packed = false;  // the weights are prepacked
  std::optional<onednn::Descriptor> weights;
  // Bytes of the gradients of weights and bias when oneDNN cannot accumulate: they are computed in
  // the workspace.
  int64_t weight_bytes = 0, bias_bytes = 0;

  int64_t forward_workspace() const {
    return (packed ? 0 : Aligned(forward.packed_bytes())) + forward.workspace_bytes();
  }
  int64_t backward_workspace() const {
    const int64_t data =
        wanted.data ? Aligned(backward.packed_bytes()) + backward.workspace_bytes() : 0;
    const int64_t by_weights =
        weights ? Aligned(weights->scratchpad_bytes()) + Aligned(weight_bytes) + bias_bytes : 0;
    return std::max(data, by_weights);
  }
};

class WinogradConvolution final : public Operator {
 public:
  explicit WinogradConvolution(const Setup& setup) : s_(setup) {
    if (s_.weights) weights_ = s_.weights->Make();
  }

  void Forward(const ForwardArgs& args) override {
    if (args.req[0] == OpReqType::kNullOp) return;
    winograd::Ending ending;
    if (s_.arguments.bias) ending.bias = args.in_data[P::kBias].dptr<float>();
    if (s_.arguments.sum)
      CopyBlob(args.ctx.run_ctx, OpReqType::kWriteTo, args.in_data.back(), args.out_data[0]);
    ending.accumulate = s_.arguments.sum || args.req[0] == OpReqType::kAddTo;
    ending.low = s_.low, ending.high = s_.high;
    Correlate(s_.forward, args.ctx, args.in_data[P::kData], args.in_data[P::kWeight], s_.packed,
              ending, args.out_data[0]);
  }

  void Backward(const BackwardArgs& args) override {
    if (weights_)
      WeightGradient(args.ctx, args.out_grad[0], args.in_data[P::kData], args.req, args.in_grad);
    if (s_.wanted.data && args.req[P::kData] != OpReqType::kNullOp) {
      winograd::Ending ending;
      ending.accumulate = args.req[P::kData] == OpReqType::kAddTo;
      Correlate(s_.backward, args.ctx, args.out_grad[0], args.in_data[P::kWeight], false, ending,
                args.in_grad[P::kData]);
    }
  }

 private:
  static void Correlate(const winograd::Pass& pass, const OpContext& ctx, const TBlob& source,
                        const TBlob& weight, bool is_packed, const winograd::Ending& ending,
                        const TBlob& out) {
    auto* workspace = static_cast<char*>(ctx.workspace.data);
    const auto* packed = static_cast<const float*>(weight.data);
    if (!is_packed) {
      pass.Pack(packed, reinterpret_cast<float*>(workspace));
      packed = reinterpret_cast<const float*>(workspace);
      workspace += Aligned(pass.packed_bytes());
    }
    pass.Run(source.dptr<float>(), packed, out.dptr<float>(), ending, workspace);
  }

  void WeightGradient(const OpContext& ctx, const TBlob& head, const TBlob& data,
                      std::span<const OpReqType> req, std::span<const TBlob> in_grad) const {
    char* spare = static_cast<char*>(ctx.workspace.data) + Aligned(s_.weights->scratchpad_bytes());
    void* weight = s_.weight_bytes > 0 ? spare : in_grad[P::kWeight].data;
    void* bias = !s_.wanted.bias     ? nullptr
                 : s_.bias_bytes > 0 ? spare + Aligned(s_.weight_bytes)
                                     : in_grad[P::kBias].data;
    weights_->Execute({{Arg::kSrc, data.data},
                       {Arg::kDiffDst, head.data},
                       {Arg::kDiffWeights, weight},
                       {Arg::kDiffBias, bias},
                       {Arg::kScratchpad, ctx.workspace.data}});
    if (s_.wanted.weight && s_.weight_bytes > 0)
      Deliver(ctx, weight, req[P::kWeight], in_grad[P::kWeight]);
    if (s_.wanted.bias && s_.bias_bytes > 0) Deliver(ctx, bias, req[P::kBias], in_grad[P::kBias]);
  }

  static void Deliver(const OpContext& ctx, const void* values, OpReqType req,
                      const TBlob& gradient) {
    Map<float>(ctx.run_ctx, gradient, req,
               [from = static_cast<const float*>(values)](int64_t i) { return from[i]; });
  }

  const Setup s_;
  std::unique_ptr<onednn::Primitive> weights_;
};

Expected<onednn::Descriptor, Refusal> WeightGradientOf(const ConvolutionSettings& settings,
                                                       const PlanRequest& request, Backend& backend,
                                                       Layout images, Layout weights, bool bias) {
  onednn::Convolution c;
  c.src = {request.in[P::kData].shape, images};
  c.weights = {request.in[P::kWeight].shape, weights};
  c.dst = {request.out[0].shape, images};
  c.stride = settings.stride;
  c.dilate = settings.dilate;
  c.pad = settings.pad;
  c.bias = bias;
  c.winograd_weights = true;
  onednn::Result result = onednn::ConvolutionBackwardWeights(backend, c);
  if (!result) return result.error();
  if (weighted::Penalty(*result) > 0)
    return Refusal{"oneDNN has no direct kernel for the weight gradient"};
  return *result;
}

// "" if this kernel is at least a tenth faster than direct kernels, by the model.
std::string WhySlow(const Setup& setup, bool training) {
  constexpr double kWorthwhile = 0.9;
  double cost = setup.forward.Cost(training), direct = setup.forward.DirectCost();
  if (training) {
    cost += setup.backward.Cost(true);
    direct += setup.backward.DirectCost();
  }
  if (cost <= kWorthwhile * direct) return "";
  return format("the direct kernel is faster: {:.0f} versus {:.0f} core microseconds",
                direct / 1000, cost / 1000);
}

Expected<Plan, Refusal> PlanWinograd(const OperatorProperty& base, const PlanRequest& request,
                                     Backend& backend) {
  if (request.math == Math::kExact) return Refusal{"train.math is exact"};
  if (request.in[P::kData].type != DType::kFloat32) return Refusal{"float32 only"};
  const ConvolutionSettings settings =
      static_cast<const ConvolutionProperty&>(base).SettingsFor(request.in[P::kData].shape);
  if (settings.axes() != 2) return Refusal{"two spatial axes only"};
  if (!settings.even_pad()) return Refusal{"equal padding on both sides only"};
  const weighted::Arguments arguments{!settings.no_bias, settings.with_sum};
  if (std::string why = WhyNotEpilogue(settings, request); !why.empty()) return Refusal{why};
  if (std::string why = weighted::WhyNot(request, arguments); !why.empty()) return Refusal{why};
  const ConvolutionGeometry geometry(settings, request.in[P::kData].shape, request.out[0].shape);
  if (std::string why = winograd::WhyNot(geometry); !why.empty()) return Refusal{why};
  const Layout images = backend.Intern(winograd::ImageLayout()),
               weights = backend.Intern(winograd::WeightLayout());

  const bool training = request.is_train || request.needs_backward;
  Setup setup{winograd::Pass(geometry, false, request.threads),
              winograd::Pass(geometry, true, request.threads),
              Wanted(request),
              arguments,
              settings.low(),
              settings.high(),
              !training,
              {}};
  if (std::string why = WhySlow(setup, training); !why.empty()) return Refusal{why};
  if (setup.wanted.weights()) {
    const auto found =
        WeightGradientOf(settings, request, backend, images, weights, setup.wanted.bias);
    if (!found) return found.error();
    setup.weights = *found;
    const auto adds = [&](size_t i) { return request.grad_req[i] == OpReqType::kAddTo; };
    if (!setup.wanted.weight || adds(P::kWeight))
      setup.weight_bytes = weights.Bytes(request.in[P::kWeight].shape, DType::kFloat32);
    if (setup.wanted.bias && adds(P::kBias)) setup.bias_bytes = request.in[P::kBias].Bytes();
  }

  Plan plan = PlainPlan(base, request);
  plan.in[P::kData] = plan.out[0] = images;
  if (arguments.sum) plan.in.back() = images;
  plan.in[P::kWeight] = setup.packed ? backend.Intern(winograd::PackedLayout()) : weights;
  plan.forward_workspace = setup.forward_workspace();
  if (request.needs_backward) {
    plan.backward_workspace = setup.backward_workspace();
    std::vector<bool> reads(request.in.size(), false);
    reads[P::kData] = setup.wanted.weights();
    reads[P::kWeight] = setup.wanted.data;
    plan.backward_reads = BackwardReads{{true}, reads, {false}};
  }
  plan.cost += setup.forward.Cost(training) / std::max(request.threads, 1);
  plan.make = [setup] { return std::make_unique<WinogradConvolution>(setup); };
  return plan;
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(convolution_winograd_onednn, registry) {
  for (const char* op : mxtrain::ConvolutionProperty::kOperators) {
    registry.AddKernel({op, mxtrain::DeviceType::kCPU, "winograd", 90, mxtrain::PlanWinograd});
  }
}
