// SPDX-License-Identifier: Apache-2.0
// Deconvolution by oneDNN's primitives of the mirrored convolution: the output is the gradient of
// its data, the gradient of the data is its output. The weight has the layout of the forward pass;
// the backward pass reads a second one, and its gradient may have one of its own. The bias is added
// by a loop: those primitives know none.
#include <algorithm>
#include <array>

#include "mxtrain/base/math.h"
#include "mxtrain/device/blocked_layout.h"
#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/convolution/weighted_layer.h"
#include "mxtrain/operators/deconvolution/deconvolution.h"

namespace mxtrain {
namespace {

using onednn::Arg;
using onednn::Descriptor;
using onednn::Primitive;
using P = DeconvolutionProperty;

// An array whose channels lie side by side in blocks: [batch, blocks, places, block].
struct ChannelBlocks {
  int64_t batch, channels, places, block;
  ChannelBlocks(const TShape& shape, Layout layout)
      : batch(shape[0]),
        channels(shape[1]),
        places(shape.Product(2, shape.ndim())),
        block(ChannelBlock(shape, layout)) {}
  int64_t blocks() const { return CeilDivide(channels, block); }
  // f(first element, its channel, channels of the block) for all places of batch element n in a
  // block of channels.
  template <typename F>
  void ForPlaces(int64_t n, int64_t which, F f) const {
    const int64_t channel = which * block, count = std::min(block, channels - channel),
                  first = (n * blocks() + which) * places * block;
    for (int64_t place = 0; place < places; ++place) f(first + place * block, channel, count);
  }
};

template <typename T>
void AddBias(const ChannelBlocks& view, const float* bias, T* out) {
  const int64_t tasks = view.batch * view.blocks();
  ParallelFor(tasks, std::max<int64_t>(1, kParallelGrain / std::max<int64_t>(view.places, 1)),
              [&](int64_t begin, int64_t end) {
                for (int64_t task = begin; task < end; ++task) {
                  view.ForPlaces(task / view.blocks(), task % view.blocks(),
                                 [&](int64_t at, int64_t channel, int64_t count) {
                                   for (int64_t c = 0; c < count; ++c) {
                                     out[at + c] = static_cast<T>(static_cast<float>(out[at + c]) +
                                                                  bias[channel + c]);
                                   }
                                 });
                }
              });
}

template <typename T>
void SumOverPlaces(const ChannelBlocks& view, const T* head, float* sums) {
  constexpr int64_t kMostSums = 64;  // of a task
  const int64_t pieces = CeilDivide(std::min(view.block, view.channels), kMostSums);
  ParallelFor(view.blocks() * pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t which = task / pieces, low = task % pieces * kMostSums;
      std::array<double, kMostSums> sum{};
      int64_t used = 0, channels_from = 0;
      for (int64_t n = 0; n < view.batch; ++n) {
        view.ForPlaces(n, which, [&](int64_t at, int64_t channel, int64_t count) {
          used = std::clamp<int64_t>(count - low, 0, kMostSums);
          channels_from = channel + low;
          for (int64_t c = 0; c < used; ++c)
            sum[static_cast<size_t>(c)] += static_cast<double>(head[at + low + c]);
        });
      }
      for (int64_t c = 0; c < used; ++c)
        sums[channels_from + c] = static_cast<float>(sum[static_cast<size_t>(c)]);
    }
  });
}

// The primitives of one choice of layouts.
struct Choice {
  Descriptor output;
  std::optional<Descriptor> data, weight;  // gradients
  int penalty = 0;
};

class DeconvolutionOneDnn final : public Operator {
 public:
  DeconvolutionOneDnn(const Choice& choice, bool bias)
      : output_(choice.output.Make()), bias_(bias) {
    if (choice.data) data_ = choice.data->Make();
    if (choice.weight) weight_ = choice.weight->Make();
  }

  void Forward(const ForwardArgs& args) override {
    if (args.req[0] == OpReqType::kNullOp) return;
    const TBlob& out = args.out_data[0];
    output_->Execute({{Arg::kDiffDst, args.in_data[P::kData].data},
                      {Arg::kWeights, args.in_data[P::kWeight].data},
                      {Arg::kDiffSrc, out.data},
                      {Arg::kScratchpad, args.ctx.workspace.data}});
    if (!bias_) return;
    const ChannelBlocks view(out.shape, out.layout);
    const float* bias = args.in_data[P::kBias].dptr<float>();
    if (out.type == DType::kFloat32) {
      AddBias(view, bias, out.dptr<float>());
    } else {
      AddBias(view, bias, out.dptr<bfloat16>());
    }
  }

  void Backward(const BackwardArgs& args) override {
    const TBlob& head = args.out_grad[0];
    if (weight_ && args.req[P::kWeight] != OpReqType::kNullOp) {
      weight_->Execute({{Arg::kSrc, head.data},
                        {Arg::kDiffDst, args.in_data[P::kData].data},
                        {Arg::kDiffWeights, args.in_grad[P::kWeight].data},
                        {Arg::kScratchpad, args.ctx.workspace.data}});
    }
    if (data_ && args.req[P::kData] != OpReqType::kNullOp) {
      data_->Execute({{Arg::kSrc, head.data},
                      {Arg::kWeights, args.in_data[P::kWeight].data},
                      {Arg::kDst, args.in_grad[P::kData].data},
                      {Arg::kScratchpad, args.ctx.workspace.data}});
    }
    if (!bias_ || args.req[P::kBias] == OpReqType::kNullOp) return;
    const ChannelBlocks view(head.shape, head.layout);
    float* sums = args.in_grad[P::kBias].dptr<float>();
    if (head.type == DType::kFloat32) {
      SumOverPlaces(view, head.dptr<float>(), sums);
    } else {
      SumOverPlaces(view, head.dptr<bfloat16>(), sums);
    }
  }

 private:
  std::unique_ptr<Primitive> output_, data_, weight_;
  bool bias_;
};

class Planner {
 public:
  Planner(const DeconvolutionProperty& property, const PlanRequest& request, Backend& backend)
      : mirror_(property.MirrorOf(request.in[P::kData].shape)),
        request_(request),
        backend_(backend),
        wanted_(request) {}

  const weighted::Wanted& wanted() const { return wanted_; }

  // Tries the offered layout of the data first, then oneDNN's preferred one, then all plain.
  Expected<Choice, Refusal> Best() const {
    const std::optional<Layout> data = request_.in_layout[P::kData],
                                weight = request_.in_layout[P::kWeight];
    std::optional<Choice> best;
    Refusal refusal;
    const auto consider = [&](std::optional<Layout> data_layout, std::optional<Layout> weights,
                              std::optional<Layout> out, int extra) {
      Expected<Choice, Refusal> choice = Try(data_layout, weights, out);
      if (!choice) {
        if (refusal.reason.empty()) refusal = choice.error();
        return;
      }
      choice->penalty += extra;
      if (!best || choice->penalty < best->penalty) best = *choice;
    };
    constexpr int kReorderPenalty = 1;  // of data whose layout differs from the offered one
    if (!request_.is_train && weight && !weight->plain()) consider(data, weight, {}, 0);
    consider(data, {}, {}, 0);
    if (data) consider({}, {}, {}, kReorderPenalty);
    consider(Layout(), Layout(), Layout(), data && !data->plain() ? kReorderPenalty : 0);
    if (!best) return refusal;
    if (best->penalty >= weighted::kReferencePenalty)
      return Refusal{"oneDNN has only reference loops for this shape"};
    return *best;
  }

 private:
  onednn::Convolution Describe() const {
    onednn::Convolution c;
    c.src = {request_.out[0].shape, std::nullopt, request_.out[0].type};
    c.weights = {request_.in[P::kWeight].shape, std::nullopt, request_.in[P::kWeight].type};
    c.dst = {request_.in[P::kData].shape, std::nullopt, request_.in[P::kData].type};
    c.stride = mirror_.stride;
    c.dilate = mirror_.dilate;
    c.pad = mirror_.pad;
    c.groups = mirror_.num_group;
    c.training = request_.is_train;
    c.winograd_weights = request_.math != Math::kExact;
    return c;
  }

  Expected<Choice, Refusal> Try(std::optional<Layout> data, std::optional<Layout> weights,
                                std::optional<Layout> out) const {
    onednn::Convolution c = Describe();
    c.dst.layout = data;
    c.weights.layout = weights;
    c.src.layout = out;
    const onednn::Result output = onednn::ConvolutionBackwardData(backend_, c);
    if (!output) return output.error();
    Choice choice{*output, {}, {}, weighted::Penalty(*output)};
    c.src.layout = output->LayoutOf(Arg::kDiffSrc);
    c.dst.layout = output->LayoutOf(Arg::kDiffDst);
    if (ChannelBlock(request_.out[0].shape, *c.src.layout) == 0)
      return Refusal{"oneDNN's layout of the output has no blocks of channels"};
    if (wanted_.data) {
      c.weights.layout = std::nullopt;
      const onednn::Result gradient = onednn::ConvolutionForward(backend_, c);
      if (!gradient) return gradient.error();
      choice.data = *gradient;
      choice.penalty += weighted::Penalty(*gradient);
    }
    if (wanted_.weight) {
      const Layout canonical = output->LayoutOf(Arg::kWeights);
      if (std::string why = AddWeightGradient(c, canonical, &choice); !why.empty())
        return Refusal{why};
    }
    return choice;
  }

  // In the layout of the weight, unless oneDNN is fast only in another.
  std::string AddWeightGradient(onednn::Convolution c, Layout canonical, Choice* choice) const {
    c.weights.type = DType::kFloat32;
    std::string why;
    int least = 0;
    for (const std::optional<Layout>& layout :
         {std::optional(canonical), std::optional<Layout>()}) {
      c.weights.layout = layout;
      const onednn::Result gradient = onednn::ConvolutionBackwardWeights(backend_, c);
      if (!gradient) {
        if (why.empty()) why = gradient.error().reason;
        continue;
      }
      const int penalty = weighted::Penalty(*gradient);
      if (choice->weight && penalty >= least) continue;
      choice->weight = *gradient;
      least = penalty;
    }
    if (!choice->weight) return why;
    choice->penalty += least;
    return "";
  }

  ConvolutionSettings mirror_;
  const PlanRequest& request_;
  Backend& backend_;
  weighted::Wanted wanted_;
};

void PlanBackward(const Choice& choice, const weighted::Wanted& wanted, const PlanRequest& request,
                  Plan* plan) {
  plan->accumulates = false;
  std::vector<bool> reads(request.in.size(), false);
  reads[P::kData] = wanted.weight;
  reads[P::kWeight] = wanted.data;
  plan->backward_reads = BackwardReads{{true}, reads, {false}};
  if (choice.data) {
    const Layout layout = choice.data->LayoutOf(Arg::kWeights);
    if (layout != plan->in[P::kWeight]) {
      plan->backward_in.assign(request.in.size(), std::nullopt);
      plan->backward_in[P::kWeight] = layout;
    }
    plan->backward_workspace = choice.data->scratchpad_bytes();
  }
  if (choice.weight) {
    const Layout layout = choice.weight->LayoutOf(Arg::kDiffWeights);
    if (layout != plan->in[P::kWeight] || request.in[P::kWeight].type != DType::kFloat32) {
      plan->grad_layout.assign(request.in.size(), std::nullopt);
      plan->grad_layout[P::kWeight] = {DType::kFloat32, layout};
    }
    plan->backward_workspace =
        std::max(plan->backward_workspace, choice.weight->scratchpad_bytes());
  }
}

Expected<Plan, Refusal> PlanOneDnn(const OperatorProperty& base, const PlanRequest& request,
                                   Backend& backend) {
  const auto& property = static_cast<const DeconvolutionProperty&>(base);
  const bool bias = !property.param().no_bias;
  if (std::string why = weighted::WhyNot(request, {bias, /*sum=*/false}); !why.empty())
    return Refusal{why};
  if (request.out_req[0] == OpReqType::kAddTo)
    return Refusal{"kAddTo of the output is not supported"};
  const Planner planner(property, request, backend);
  const Expected<Choice, Refusal> choice = planner.Best();
  if (!choice) return choice.error();

  Plan plan = PlainPlan(base, request);
  plan.in[P::kData] = AsOffered(request.in[P::kData].shape, choice->output.LayoutOf(Arg::kDiffDst),
                                request.in_layout[P::kData]);
  plan.in[P::kWeight] = choice->output.LayoutOf(Arg::kWeights);
  plan.out[0] = Canonical(request.out[0].shape, choice->output.LayoutOf(Arg::kDiffSrc));
  plan.forward_workspace = choice->output.scratchpad_bytes();
  if (request.needs_backward) PlanBackward(*choice, planner.wanted(), request, &plan);
  plan.cost += weighted::ArithmeticCost(property, request);
  plan.make = [choice = *choice, bias] {
    return std::make_unique<DeconvolutionOneDnn>(choice, bias);
  };
  return plan;
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(deconvolution_onednn, registry) {
  registry.AddKernel(
      {"Deconvolution", mxtrain::DeviceType::kCPU, "onednn", 100, mxtrain::PlanOneDnn});
}
