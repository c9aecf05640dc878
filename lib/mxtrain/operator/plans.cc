// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/plans.h"

#include <algorithm>

#include "mxtrain/device/blocked_layout.h"

namespace mxtrain {
namespace {

constexpr double kBytesPerNanosecond = 10;  // of one socket's memory, roughly
constexpr double kCallNanoseconds = 50;

int64_t BytesOf(const TensorSpec& spec, Layout layout) {
  return layout.Bytes(spec.shape, spec.type);
}

}  // namespace

double MoveCost(double bytes) {
  return kCallNanoseconds + bytes / kBytesPerNanosecond;
}

void GrantInplace(const OperatorProperty& property, const PlanRequest& request, Plan* plan) {
  const auto grant = [&](std::vector<InplacePair> pairs, const auto& from, const auto& from_layout,
                         const auto& to, const auto& to_layout) {
    std::erase_if(pairs, [&](const InplacePair& pair) {
      const auto f = static_cast<size_t>(pair.from), t = static_cast<size_t>(pair.to);
      return from[f].type != to[t].type ||
             BytesOf(from[f], from_layout[f]) != BytesOf(to[t], to_layout[t]);
    });
    return pairs;
  };
  plan->forward_inplace =
      grant(property.ForwardInplaceOption(), request.in, plan->in, request.out, plan->out);
  // What backward reads: head gradients, which are as the outputs, arguments, outputs.
  std::vector<TensorSpec> read(request.out.begin(), request.out.end());
  std::vector<Layout> read_layouts = plan->out;
  read.insert(read.end(), request.in.begin(), request.in.end());
  read_layouts.insert(read_layouts.end(), plan->in.begin(), plan->in.end());
  read.insert(read.end(), request.out.begin(), request.out.end());
  read_layouts.insert(read_layouts.end(), plan->out.begin(), plan->out.end());
  plan->backward_inplace =
      grant(property.BackwardInplaceOption(), read, read_layouts, request.in, plan->in);
}

Plan PlainPlan(const OperatorProperty& property, const PlanRequest& request) {
  Plan plan;
  plan.in.resize(request.in.size());
  plan.out.resize(request.out.size());
  plan.aux.resize(request.aux.size());
  GrantInplace(property, request, &plan);
  double bytes = 0;
  for (const TensorSpec& spec : request.in) bytes += static_cast<double>(BytesOf(spec, {}));
  for (const TensorSpec& spec : request.out) bytes += static_cast<double>(BytesOf(spec, {}));
  plan.cost = MoveCost(bytes);
  return plan;
}

PlanFn OfFloats(PlanFn plan) {
  return [plan = std::move(plan)](const OperatorProperty& property, const PlanRequest& request,
                                  Backend& backend) -> Expected<Plan, Refusal> {
    const DType type = (request.in.empty() ? request.out : request.in)[0].type;
    if (!IsFloating(type))
      return Refusal{format("computes with floating types, not {}; insert a Cast", NameOf(type))};
    return plan(property, request, backend);
  };
}

Layout OfferedChannelsLast(const PlanRequest& request, const TShape& shape) {
  for (size_t i = 0; i < request.in.size(); ++i) {
    const std::optional<Layout>& offered = request.in_layout[i];
    if (offered && request.in[i].shape == shape && ChannelsLast(*offered)) return *offered;
  }
  return {};
}

void LieAs(Layout layout, const OperatorProperty& property, const PlanRequest& request,
           Plan* plan) {
  const auto lay = [&](std::span<const TensorSpec> arrays, std::vector<Layout>* layouts) {
    for (size_t i = 0; i < arrays.size(); ++i) {
      if (arrays[i].shape.ndim() == request.out[0].shape.ndim()) (*layouts)[i] = layout;
    }
  };
  lay(request.in, &plan->in);
  lay(request.out, &plan->out);
  GrantInplace(property, request, plan);
}

Plan FlatPlan(const OperatorProperty& property, const PlanRequest& request, bool zero_to_zero) {
  Plan plan = PlainPlan(property, request);
  const TShape& shape = request.out[0].shape;
  Layout common;
  for (size_t i = 0; i < request.in.size() && common.plain(); ++i) {
    const std::optional<Layout>& offered = request.in_layout[i];
    if (!offered || request.in[i].shape != shape || (offered->Padded(shape) && !zero_to_zero))
      continue;
    common = *offered;
  }
  for (size_t i = 0; i < request.in.size(); ++i) {
    if (request.in[i].shape == shape) plan.in[i] = common;
  }
  for (size_t i = 0; i < request.out.size(); ++i) {
    if (request.out[i].shape == shape) plan.out[i] = common;
  }
  GrantInplace(property, request, &plan);
  return plan;
}

}  // namespace mxtrain
