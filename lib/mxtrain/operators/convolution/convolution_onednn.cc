// Convolution by oneDNN. Weights have one master form, that of the forward pass, which their gradient shares; backward data reads a second
// one where it wants another.
#include <cmath>
#include <optional>

#include "mxtrain/device/cpu/onednn/onednn.h"
#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/convolution/convolution.h"

namespace mxtrain {
namespace {

using onednn::Arg;
using onednn::Descriptor;
using onednn::Primitive;
using onednn::Speed;
using P = ConvolutionProperty;

struct Wanted {
  bool data = false, weight = false, bias = false;
  bool any() const { return data || weight || bias; }
  bool weights() const { return weight || bias; }  // one primitive makes both
};

// The primitives of one layer and what speaks against them.
struct Choice {
  Descriptor forward;
  std::optional<Descriptor> backward_data, backward_weights;
  int penalty = 0;
};

int Penalty(const Descriptor& d) {
  switch (d.speed()) {
    case Speed::kDirect: return 0;
    case Speed::kGemm: return 10;
    default: return 1000;
  }
}

class Planner {
 public:
  Planner(const ConvolutionParam& param, const PlanRequest& request, Backend& backend)
      : param_(param), request_(request), backend_(backend) {
    for (size_t i = 0; i < request.grad_req.size() && request.needs_backward; ++i) {
      const bool want = request.grad_req[i] != OpReqType::kNullOp;
      (i == P::kData ? wanted_.data : i == P::kWeight ? wanted_.weight : wanted_.bias) = want;
    }
  }

  Wanted wanted() const { return wanted_; }

  // The offered form of the data first, then the one that oneDNN likes best, then everything plain: with blocks on one side only, a first
  // layer of one channel has no kernel for the gradient of its weights but loops over elements.
  Expected<Choice, Refusal> Best() const {
    const std::optional<Layout> offered = request_.in_layout[P::kData];
    std::optional<Choice> best;
    Refusal refusal;
    const auto consider = [&](onednn::Convolution c, int extra) {
      Expected<Choice, Refusal> choice = Try(c);
      if (!choice) {
        if (refusal.reason.empty()) refusal = choice.error();
        return;
      }
      choice->penalty += extra;
      if (!best || choice->penalty < best->penalty) best = *choice;
    };
    const std::optional<Layout> weights = request_.in_layout[P::kWeight];
    if (!request_.is_train && weights && !weights->plain()) consider(Describe(offered, weights, std::nullopt), 0);
    consider(Describe(offered, std::nullopt, std::nullopt), 0);
    if (offered) consider(Describe(std::nullopt, std::nullopt, std::nullopt), 1);
    consider(Describe(Layout(), Layout(), Layout()), offered && !offered->plain() ? 1 : 0);
    if (!best) return refusal;
    if (best->penalty >= 1000) return Refusal{"oneDNN has only a reference kernel"};
    return *best;
  }

 private:
  onednn::Convolution Describe(std::optional<Layout> data, std::optional<Layout> weights, std::optional<Layout> out) const {
    onednn::Convolution c;
    c.src = {request_.in[P::kData].shape, data};
    c.weights = {request_.in[P::kWeight].shape, weights};
    c.dst = {request_.out[0].shape, out};
    c.stride = param_.stride;
    c.dilate = param_.dilate;
    c.pad = param_.pad;
    c.groups = param_.num_group;
    c.bias = !param_.no_bias;
    c.training = request_.is_train;
    c.accumulate = request_.out_req[0] == OpReqType::kAddTo;
    return c;
  }

  Expected<Choice, Refusal> Try(onednn::Convolution c) const {
    const onednn::Result forward = ConvolutionForward(backend_, c);
    if (!forward) return forward.error();
    Choice choice{*forward, {}, {}, Penalty(*forward)};
    c.src.layout = forward->LayoutOf(Arg::kSrc);
    c.dst.layout = forward->LayoutOf(Arg::kDst);
    if (wanted_.data) {
      c.weights.layout.reset();
      const onednn::Result data = ConvolutionBackwardData(backend_, c);
      if (!data) return data.error();
      choice.backward_data = *data;
      choice.penalty += Penalty(*data);
    }
    if (wanted_.weights()) {
      c.weights.layout = forward->LayoutOf(Arg::kWeights);
      c.bias = wanted_.bias;
      const onednn::Result weights = ConvolutionBackwardWeights(backend_, c);
      if (!weights) return weights.error();
      choice.backward_weights = *weights;
      choice.penalty += Penalty(*weights);
    }
    return choice;
  }

  const ConvolutionParam& param_;
  const PlanRequest& request_;
  Backend& backend_;
  Wanted wanted_;
};

int64_t RoundUp(int64_t bytes) { return (bytes + 63) / 64 * 64; }

class ConvolutionOneDnn final : public Operator {
 public:
  ConvolutionOneDnn(const Choice& choice, Wanted wanted) : forward_(choice.forward.Make()), wanted_(wanted) {
    if (choice.backward_data) backward_data_ = choice.backward_data->Make();
    if (choice.backward_weights) {
      backward_weights_ = choice.backward_weights->Make();
      spare_offset_ = RoundUp(choice.backward_weights->scratchpad_bytes());
    }
  }

  void Forward(const OpContext& ctx, std::span<const TBlob> in, std::span<const OpReqType> req, std::span<const TBlob> out,
               std::span<const TBlob>) override {
    if (req[0] == OpReqType::kNullOp) return;
    forward_->Execute({{Arg::kSrc, in[P::kData].data},
                       {Arg::kWeights, in[P::kWeight].data},
                       {Arg::kBias, in.size() > P::kBias ? in[P::kBias].data : nullptr},
                       {Arg::kDst, out[0].data},
                       {Arg::kScratchpad, ctx.workspace.data}});
  }

  void Backward(const OpContext& ctx, std::span<const TBlob> out_grad, std::span<const TBlob> in, std::span<const TBlob>,
                std::span<const OpReqType> req, std::span<const TBlob> in_grad, std::span<const TBlob>) override {
    if (wanted_.weights()) {
      // The bias alone is wanted: the gradient of the weights goes into the workspace.
      void* spare = static_cast<char*>(ctx.workspace.data) + spare_offset_;
      backward_weights_->Execute({{Arg::kSrc, in[P::kData].data},
                                  {Arg::kDiffDst, out_grad[0].data},
                                  {Arg::kDiffWeights, wanted_.weight ? in_grad[P::kWeight].data : spare},
                                  {Arg::kDiffBias, wanted_.bias ? in_grad[P::kBias].data : nullptr},
                                  {Arg::kScratchpad, ctx.workspace.data}});
    }
    if (wanted_.data && req[P::kData] != OpReqType::kNullOp) {
      backward_data_->Execute({{Arg::kDiffDst, out_grad[0].data},
                               {Arg::kWeights, in[P::kWeight].data},
                               {Arg::kDiffSrc, in_grad[P::kData].data},
                               {Arg::kScratchpad, ctx.workspace.data}});
    }
  }

 private:
  std::unique_ptr<Primitive> forward_, backward_data_, backward_weights_;
  Wanted wanted_;
  int64_t spare_offset_ = 0;
};

void PlanBackward(const Choice& choice, Wanted wanted, const PlanRequest& request, Plan* plan) {
  plan->accumulates = false;
  plan->backward_in.assign(request.in.size(), std::nullopt);
  std::vector<bool> reads(request.in.size(), false);
  reads[P::kData] = wanted.weights();
  reads[P::kWeight] = wanted.data;
  plan->backward_reads = BackwardReads{{true}, reads, {false}};
  if (choice.backward_data) {
    const Layout form = choice.backward_data->LayoutOf(Arg::kWeights);
    if (form != plan->in[P::kWeight]) plan->backward_in[P::kWeight] = form;
    plan->backward_workspace = choice.backward_data->scratchpad_bytes();
  }
  if (choice.backward_weights) {
    int64_t bytes = choice.backward_weights->scratchpad_bytes();
    if (!wanted.weight) bytes = RoundUp(bytes) + plan->in[P::kWeight].Bytes(request.in[P::kWeight].shape, DType::kFloat32);
    plan->backward_workspace = std::max(plan->backward_workspace, bytes);
  }
}

Expected<Plan, Refusal> PlanOneDnn(const OperatorProperty& base, const PlanRequest& request, Backend& backend) {
  const auto& property = static_cast<const ConvolutionProperty&>(base);
  for (const TensorSpec& spec : request.in) {
    if (spec.type != DType::kFloat32) return Refusal{"float32 only"};
    if (spec.shape.Size() == 0) return Refusal{"an empty array"};
  }
  const Planner planner(property.param(), request, backend);
  const Expected<Choice, Refusal> choice = planner.Best();
  if (!choice) return choice.error();

  Plan plan = PlainPlan(base, request);
  plan.in[P::kData] = choice->forward.LayoutOf(Arg::kSrc);
  plan.in[P::kWeight] = choice->forward.LayoutOf(Arg::kWeights);
  plan.out[0] = choice->forward.LayoutOf(Arg::kDst);
  plan.forward_workspace = choice->forward.scratchpad_bytes();
  if (request.needs_backward) PlanBackward(*choice, planner.wanted(), request, &plan);
  constexpr double kFlopsPerNanosecond = 25;  // multiply-adds of a core
  const double flops = property.ForwardFlops({request.in[0].shape, request.in[1].shape}, {request.out[0].shape});
  plan.cost += flops / (kFlopsPerNanosecond * std::max(request.threads, 1));
  plan.make = [choice = *choice, wanted = planner.wanted()] { return std::make_unique<ConvolutionOneDnn>(choice, wanted); };
  return plan;
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(convolution_onednn, registry) {
  registry.AddRow({"Convolution", mxtrain::DeviceType::kCPU, "onednn", 100, mxtrain::PlanOneDnn});
}
