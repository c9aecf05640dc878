// SPDX-License-Identifier: Apache-2.0
// Convolution by oneDNN.
#include "mxtrain/operators/convolution/convolution.h"
#include "mxtrain/operators/convolution/weighted_layer.h"

namespace mxtrain {
namespace {

using weighted::Choice;
using P = ConvolutionProperty;

class Planner {
 public:
  Planner(const ConvolutionSettings& settings, const PlanRequest& request, Backend& backend)
      : settings_(settings), request_(request), backend_(backend), wanted_(request) {}

  const weighted::Wanted& wanted() const { return wanted_; }

  // Tries the offered layout of the data first, then oneDNN's preferred one, then all plain: with
  // blocks on one side only, oneDNN computes the weight gradient of a first layer of one channel by
  // loops over elements.
  Expected<Choice, Refusal> Best() const {
    const std::optional<Layout> data = request_.in_layout[P::kData],
                                weight = request_.in_layout[P::kWeight];
    std::optional<Choice> best;
    Refusal refusal;
    const auto consider = [&](const onednn::Convolution& c, int extra) {
      Expected<Choice, Refusal> choice = weighted::Try(backend_, kBuilders, c, wanted_);
      if (!choice) {
        if (refusal.reason.empty()) refusal = choice.error();
        return;
      }
      choice->penalty += extra;
      if (!best || choice->penalty < best->penalty) best = *choice;
    };
    const bool canonical = !request_.is_train && weight && !weight->plain();
    if (canonical) consider(Describe(data, weight, std::nullopt), 0);
    consider(Describe(data, std::nullopt, std::nullopt), 0);
    if (data) consider(Describe(std::nullopt, std::nullopt, std::nullopt), kReorderPenalty);
    consider(Describe(Layout(), Layout(), Layout()), data && !data->plain() ? kReorderPenalty : 0);
    if (!best) return refusal;
    if (best->penalty >= weighted::kReferencePenalty)
      return Refusal{"oneDNN has only reference loops for this shape"};
    return *best;
  }

 private:
  static constexpr int kReorderPenalty = 1;  // of data whose layout differs from the offered one
  static constexpr weighted::Builders<onednn::Convolution> kBuilders{
      true, onednn::ConvolutionForward, onednn::ConvolutionBackwardData,
      onednn::ConvolutionBackwardWeights};

  onednn::Convolution Describe(std::optional<Layout> data, std::optional<Layout> weights,
                               std::optional<Layout> out) const {
    onednn::Convolution c;
    c.src = {request_.in[P::kData].shape, data, request_.in[P::kData].type};
    c.weights = {request_.in[P::kWeight].shape, weights, request_.in[P::kWeight].type};
    c.dst = {request_.out[0].shape, out, request_.out[0].type};
    c.stride = settings_.stride;
    c.dilate = settings_.dilate;
    c.pad = c.pad_after = TShape::OfRank(settings_.axes());
    for (int i = 0; i < settings_.axes(); ++i) {
      c.pad[i] = settings_.pad_before(i);
      c.pad_after[i] = settings_.pad_after(i);
    }
    c.groups = settings_.num_group;
    c.bias = !settings_.no_bias;
    c.training = request_.is_train;
    c.winograd_weights = request_.math != Math::kExact;
    c.accumulate = settings_.with_sum || request_.out_req[0] == OpReqType::kAddTo;
    c.bounds = {settings_.low(), settings_.high()};
    return c;
  }

  const ConvolutionSettings& settings_;
  const PlanRequest& request_;
  Backend& backend_;
  weighted::Wanted wanted_;
};

Expected<Plan, Refusal> PlanOneDnn(const OperatorProperty& base, const PlanRequest& request,
                                   Backend& backend) {
  const ConvolutionSettings settings =
      static_cast<const ConvolutionProperty&>(base).SettingsFor(request.in[P::kData].shape);
  const weighted::Arguments arguments{!settings.no_bias, settings.with_sum};
  if (std::string why = WhyNotEpilogue(settings, request); !why.empty()) return Refusal{why};
  if (std::string why = weighted::WhyNot(request, arguments); !why.empty()) return Refusal{why};
  const Planner planner(settings, request, backend);
  const Expected<Choice, Refusal> choice = planner.Best();
  if (!choice) return choice.error();
  return weighted::PlanOf(base, request, *choice, planner.wanted(), arguments);
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(convolution_onednn, registry) {
  for (const char* op : mxtrain::ConvolutionProperty::kOperators) {
    registry.AddKernel({op, mxtrain::DeviceType::kCPU, "onednn", 100, mxtrain::PlanOneDnn});
  }
}
