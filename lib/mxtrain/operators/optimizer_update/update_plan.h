// SPDX-License-Identifier: Apache-2.0
#pragma once
// The part of planning shared by the kernels of both devices.
#include "mxtrain/operator/registry.h"
#include "mxtrain/operators/optimizer_update/update_rules.h"

namespace mxtrain::optimizer_update {

// Padding stays zero under every rule except those that say otherwise, and those that divide by a
// root without an epsilon: 0 / 0.
template <typename Rule>
bool KeepsZeros(const typename Rule::Param& param) {
  if constexpr (requires { Rule::kKeepsZeros; }) {
    return Rule::kKeepsZeros;
  } else if constexpr (std::is_same_v<typename Rule::Param, UpdateParam<updates::Lars>> ||
                       !requires { param.epsilon; }) {
    return true;
  } else {
    return static_cast<float>(param.epsilon) > 0;
  }
}

// Indices of the arrays of weight n in a call, for a rule with the given number of states.
struct Places {
  size_t weight, grad, first_state, num_states;
  Places(size_t n, size_t num_weights, size_t states)
      : weight(n), grad(num_weights + n), first_state(n * states), num_states(states) {}
};

template <typename T>
Arrays<T> ArraysOf(const Places& at, std::span<const TBlob> in, std::span<const TBlob> out,
                   std::span<const TBlob> aux) {
  Arrays<T> arrays{in[at.weight].dptr<T>(), in[at.grad].dptr<T>(), {}, out[at.weight].dptr<T>()};
  for (size_t k = 0; k < at.num_states; ++k) arrays.states[k] = aux[at.first_state + k].dptr<T>();
  return arrays;
}

// The common layout of a weight, its gradient and states: the first opaque one offered.
inline Layout LayoutOf(const Places& at, const PlanRequest& request, bool keeps_zeros) {
  std::vector<std::optional<Layout>> offers = {request.in_layout[at.weight],
                                               request.in_layout[at.grad]};
  for (size_t k = 0; k < at.num_states; ++k)
    offers.push_back(request.aux_layout[at.first_state + k]);
  for (const std::optional<Layout>& offer : offers) {
    if (offer && !offer->plain() && (keeps_zeros || !offer->Padded(request.in[at.weight].shape)))
      return *offer;
  }
  return {};
}

// Make(param, stored elements of each weight, &plan) adds the operator and its scratch size.
template <template <typename> class Rule, typename Make>
Expected<Plan, Refusal> MakePlan(const OperatorProperty& property, const PlanRequest& request,
                                 Make make) {
  using Param = typename Rule<float>::Param;
  const Param& param = static_cast<const PropertyWithParam<Param>&>(property).param();
  const DType type = request.in[0].type;
  if (!IsFloating(type)) return Refusal{format("no function for {}", NameOf(type))};
  const auto num_weights = static_cast<size_t>(param.num_weights);
  Plan plan;
  plan.in.resize(request.in.size());
  std::vector<int64_t> stored_sizes;
  double bytes = 0;
  for (size_t n = 0; n < num_weights; ++n) {
    const Places at(n, num_weights, kStatesOf<Rule<float>>);
    // Noise belongs to an element, whatever its place in memory.
    const Layout layout = kHasNoise<Rule<float>> || param.rows
                              ? Layout()
                              : LayoutOf(at, request, KeepsZeros<Rule<float>>(param));
    plan.in[at.weight] = plan.in[at.grad] = layout;
    plan.out.push_back(layout);
    plan.aux.insert(plan.aux.end(), at.num_states, layout);
    plan.forward_inplace.push_back({static_cast<int>(n), static_cast<int>(n)});
    stored_sizes.push_back(layout.Bytes(request.in[n].shape, type) / SizeOf(type));
    bytes += static_cast<double>(layout.Bytes(request.in[n].shape, type));
  }
  if (param.rows) {
    plan.out.emplace_back();
    plan.forward_inplace.push_back({1, 1});
  }
  constexpr double kBytesPerNanosecond = 10;
  plan.cost = (3 + 2 * kStatesOf<Rule<float>>)*bytes / kBytesPerNanosecond;
  make(param, stored_sizes, &plan);
  return plan;
}

}  // namespace mxtrain::optimizer_update
