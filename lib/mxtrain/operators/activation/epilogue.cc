// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/activation/epilogue.h"

#include "mxtrain/operator/param_of.h"

namespace mxtrain {
namespace {

// "none" for a sum, "relu" or "relu6" for an activation, "" for an operator that cannot be fused
// behind a layer.
std::string ActOf(const OperatorProperty& property) {
  if (property.TypeString() == "Activation")
    return ParamOf(property, "act_type") == "relu" ? "relu" : "";
  if (property.TypeString() == "silu" || property.TypeString() == "hard_swish")
    return property.TypeString();
  if (property.TypeString() == "clip")
    return ParamOf(property, "a_min") == "0" && ParamOf(property, "a_max") == "6" ? "relu6" : "";
  return ParamOf(property, "num_args") == "2" || property.TypeString() == "elemwise_add" ? "none"
                                                                                         : "";
}

std::optional<Kwargs> FusedParams(std::span<const OperatorProperty* const> chain, bool with_sum) {
  Kwargs kwargs = chain[0]->GetParams();
  std::string act;
  for (const OperatorProperty* next : chain.subspan(1)) {
    act = ActOf(*next);
    if (act.empty()) return std::nullopt;
  }
  kwargs.emplace_back("act", act);
  kwargs.emplace_back("with_sum", with_sum ? "True" : "False");
  return kwargs;
}

}  // namespace

void AddEpiloguePatterns(OperatorRegistry& registry, const std::string& layer,
                         const std::string& into, bool sums, bool self_gated, FusePattern pattern,
                         std::function<bool(const OperatorProperty& layer)> accepts) {
  pattern.into = into;
  for (const char* act : {"", "Activation", "clip", "silu", "hard_swish"}) {
    const bool is_gated = act == std::string("silu") || act == std::string("hard_swish");
    if (is_gated && !self_gated) continue;
    for (const char* sum : {"elemwise_add", "ElementWiseSum", ""}) {
      const bool with_sum = *sum != 0;
      pattern.name = layer;
      pattern.chain = {layer.c_str()};
      for (const FusePattern::Link& link : {FusePattern::Link{sum, true}, FusePattern::Link{act}}) {
        if (link.op.empty()) continue;
        pattern.chain.push_back(link);
        pattern.name += "+" + link.op;
      }
      if (pattern.chain.size() == 1 || (with_sum && (!sums || is_gated))) continue;
      pattern.params =
          [with_sum,
           accepts](std::span<const OperatorProperty* const> chain) -> std::optional<Kwargs> {
        if (accepts && !accepts(*chain[0])) return std::nullopt;
        return FusedParams(chain, with_sum);
      };
      registry.AddPattern(pattern);
    }
  }
}

}  // namespace mxtrain
