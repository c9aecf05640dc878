// SPDX-License-Identifier: Apache-2.0
#pragma once
// Layers with data, a weight and an optional bias by oneDNN: Convolution and FullyConnected. The
// weight has one canonical layout, that of the forward pass, which its gradient shares; backward
// data reads a second layout if it prefers another. A bfloat16 weight has a float32 gradient, in
// the layout in which oneDNN sums; bias and its gradient are float32 for either type.
#include <optional>

#include "mxtrain/device/cpu/onednn/onednn.h"
#include "mxtrain/operator/registry.h"
#include "mxtrain/operators/convolution/weighted_types.h"

namespace mxtrain::weighted {

enum Argument { kData, kWeight, kBias };

// The primitives of one layer and their penalties.
struct Choice {
  onednn::Descriptor forward;
  std::optional<onednn::Descriptor> backward_data, backward_weights;
  int penalty = 0;
};
inline constexpr int kReferencePenalty = 1000;  // of one primitive with reference loops

// Builds the requested primitives for a struct of onednn.h (Convolution, InnerProduct); the layouts
// that the forward pass chooses also apply to backward.
template <typename Record>
struct Builders {
  // Backward data chooses its own layout of the weight instead of that of the forward pass.
  bool second_layout;
  onednn::Result (*forward)(Backend&, const Record&);
  onednn::Result (*backward_data)(Backend&, const Record&);
  onednn::Result (*backward_weights)(Backend&, const Record&);
};
int Penalty(const onednn::Descriptor& descriptor);

template <typename Record>
Expected<Choice, Refusal> Try(Backend& backend, const Builders<Record>& build, Record record,
                              const Wanted& wanted) {
  const onednn::Result forward = build.forward(backend, record);
  if (!forward) return forward.error();
  Choice choice{*forward, {}, {}, Penalty(*forward)};
  record.src.layout = forward->LayoutOf(onednn::Arg::kSrc);
  record.dst.layout = forward->LayoutOf(onednn::Arg::kDst);
  const auto add = [&choice](const onednn::Result& result,
                             std::optional<onednn::Descriptor>* into) {
    if (!result) return false;
    *into = *result;
    choice.penalty += Penalty(*result);
    return true;
  };
  if (wanted.data) {
    record.weights.layout = build.second_layout
                                ? std::nullopt
                                : std::optional(forward->LayoutOf(onednn::Arg::kWeights));
    const onednn::Result data = build.backward_data(backend, record);
    if (!add(data, &choice.backward_data)) return data.error();
  }
  if (wanted.weights()) {
    // The gradient of a narrow weight has its own layout, but a plain weight is best converted from
    // a plain gradient.
    const Layout layout = forward->LayoutOf(onednn::Arg::kWeights);
    const bool narrow = record.weights.type != DType::kFloat32;
    record.weights = {record.weights.shape,
                      narrow && !layout.plain() ? std::nullopt : std::optional(layout),
                      DType::kFloat32};
    record.bias = wanted.bias;
    const onednn::Result weights = build.backward_weights(backend, record);
    if (!add(weights, &choice.backward_weights)) return weights.error();
  }
  return choice;
}

// The arguments of a layer in addition to data and weight. The sum is the last one: the result is
// added to it.
struct Arguments {
  bool bias = false, sum = false;
};

// "" if oneDNN can be tried.
std::string WhyNot(const PlanRequest& request, const Arguments& arguments);
// The plan of a choice, complete with `make`.
Plan PlanOf(const OperatorProperty& property, const PlanRequest& request, const Choice& choice,
            const Wanted& wanted, const Arguments& arguments);

}  // namespace mxtrain::weighted
