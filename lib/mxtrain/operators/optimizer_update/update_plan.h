#pragma once
// What the rows of both devices plan alike.
#include "mxtrain/operator/registry.h"
#include "mxtrain/operators/optimizer_update/update_rules.h"

namespace mxtrain::optimizer_update {

// Padding stays zero under every rule, but for those that divide by a root without an epsilon: 0 / 0.
template <typename P>
bool KeepsZeros(const P& param) {
  if constexpr (std::is_same_v<P, LarsParam> || !requires { param.epsilon; }) {
    return true;
  } else {
    return static_cast<float>(param.epsilon) > 0;
  }
}

// The layout of weight, gradient and states alike: the first opaque one that is offered.
inline Layout LayoutOf(const PlanRequest& request, bool keeps_zeros) {
  std::vector<std::optional<Layout>> offers(request.in_layout.begin(), request.in_layout.end());
  if (offers.size() > 2) offers.resize(2);
  offers.insert(offers.end(), request.aux_layout.begin(), request.aux_layout.end());
  for (const std::optional<Layout>& offer : offers) {
    if (offer && !offer->plain() && (keeps_zeros || !offer->Padded(request.in[0].shape))) return *offer;
  }
  return {};
}

// Make(param, stored elements, &plan) adds the operator, and what scratch it wants.
template <template <typename> class Rule, typename Make>
Expected<Plan, Refusal> MakePlan(const OperatorProperty& property, const PlanRequest& request, Make make) {
  using Param = typename Rule<float>::Param;
  const Param& param = static_cast<const PropertyWithParam<Param>&>(property).param();
  if (!IsFloating(request.in[0].type)) return Refusal{format("no function for {}", NameOf(request.in[0].type))};
  const Layout layout = LayoutOf(request, KeepsZeros(param));
  Plan plan;
  plan.in = {layout, layout, Layout()};
  plan.out = {layout};
  plan.aux.assign(request.aux.size(), layout);
  plan.forward_inplace = {{0, 0}};
  constexpr double kBytesPerNanosecond = 10;
  const double arrays = 3 + 2 * static_cast<double>(request.aux.size());
  plan.cost = arrays * static_cast<double>(layout.Bytes(request.in[0].shape, request.in[0].type)) / kBytesPerNanosecond;
  const int64_t stored_size = layout.Bytes(request.in[0].shape, request.in[0].type) / static_cast<int64_t>(SizeOf(request.in[0].type));
  make(param, stored_size, &plan);
  return plan;
}

// A row of every rule: add(name of the operator, RuleTag<Rule>{}).
template <template <typename> class R>
struct RuleTag {
  template <typename C>
  using Rule = R<C>;
};
template <typename F>
void ForEachRule(F add) {
  add("sgd_update", RuleTag<Sgd>{});
  add("sgd_mom_update", RuleTag<Momentum>{});
  add("nag_mom_update", RuleTag<Nag>{});
  add("adam_update", RuleTag<Adam>{});
  add("adamw_update", RuleTag<AdamW>{});
  add("rmsprop_update", RuleTag<RmsProp>{});
  add("rmsprop_mom_update", RuleTag<RmsPropMomentum>{});
  add("rmspropalex_update", RuleTag<RmsPropCentered>{});
  add("adagrad_update", RuleTag<Adagrad>{});
  add("adadelta_update", RuleTag<Adadelta>{});
  add("ftrl_update", RuleTag<Ftrl>{});
  add("lamb_update", RuleTag<Lamb>{});
  add("lars_update", RuleTag<Lars>{});
}

}  // namespace mxtrain::optimizer_update
