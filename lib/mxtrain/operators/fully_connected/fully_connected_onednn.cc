// SPDX-License-Identifier: Apache-2.0
// FullyConnected by oneDNN's inner product: data and output plain, the weight in the library's
// layout.
#include "mxtrain/operators/convolution/weighted_layer.h"
#include "mxtrain/operators/fully_connected/fully_connected.h"

namespace mxtrain {
namespace {

using P = FullyConnectedProperty;
constexpr weighted::Builders<onednn::InnerProduct> BuildersWith(bool second_layout) {
  return {second_layout, onednn::InnerProductForward, onednn::InnerProductBackwardData,
          onednn::InnerProductBackwardWeights};
}

onednn::InnerProduct Describe(const FullyConnectedProperty& property, const PlanRequest& request) {
  const TShape weight = request.in[P::kWeight].shape,
               matrix = property.MatrixOf(request.in[P::kData].shape);
  onednn::InnerProduct p;
  p.src = {matrix, Layout(), request.in[P::kData].type};
  p.weights = {weight, std::nullopt, request.in[P::kWeight].type};
  p.dst = {{matrix[0], weight[0]}, Layout(), request.out[0].type};
  p.bias = !property.param().no_bias;
  p.training = request.is_train;
  p.accumulate = request.out_req[0] == OpReqType::kAddTo;
  return p;
}

Expected<Plan, Refusal> PlanOneDnn(const OperatorProperty& base, const PlanRequest& request,
                                   Backend& backend) {
  const auto& property = static_cast<const FullyConnectedProperty&>(base);
  const weighted::Arguments arguments{!property.param().no_bias, false};
  if (std::string why = weighted::WhyNot(request, arguments); !why.empty()) return Refusal{why};
  const weighted::Wanted wanted(request);
  onednn::InnerProduct record = Describe(property, request);
  const std::optional<Layout> weight = request.in_layout[P::kWeight];
  // Evaluation reads the canonical layout.
  if (!request.is_train && weight) record.weights.layout = weight;
  Expected<weighted::Choice, Refusal> choice =
      weighted::Try(backend, BuildersWith(true), record, wanted);
  if (!choice || choice->penalty >= weighted::kReferencePenalty) {
    record.weights.layout.reset();
    choice = weighted::Try(backend, BuildersWith(true), record, wanted);
  }
  if (!choice) return choice.error();
  // A matrix product takes the weight in either orientation, so in training it is plain, for
  // backward data too: a second layout costs a pass over the weight in every step, which is much of
  // the work of these layers.
  if (request.is_train && wanted.data) {
    record.weights.layout = Layout();
    const Expected<weighted::Choice, Refusal> plain =
        weighted::Try(backend, BuildersWith(false), record, wanted);
    if (plain && plain->penalty < weighted::kReferencePenalty) choice = plain;
  }
  return weighted::PlanOf(base, request, *choice, wanted, arguments);
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(fully_connected_onednn, registry) {
  registry.AddKernel(
      {"FullyConnected", mxtrain::DeviceType::kCPU, "onednn", 100, mxtrain::PlanOneDnn});
}
