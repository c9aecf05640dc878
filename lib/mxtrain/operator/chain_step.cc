// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/chain_step.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace mxtrain {

ChainStep ChainStepOf(const OperatorProperty& op) {
  if (op.elementwise() != Elementwise::kNo)
    return op.NumOutputs() == 1 ? ChainStep::kElementwise : ChainStep::kNone;
  const std::string name = op.TypeString();
  const auto has = [&](std::string_view key, std::string_view wanted) {
    const Kwargs params = op.GetParams();
    return std::any_of(params.begin(), params.end(), [&](const auto& param) {
      return param.first == key && param.second == wanted;
    });
  };
  if (name == "Dropout")
    return has("axes", "()") && !has("p", "0") ? ChainStep::kDropout : ChainStep::kNone;
  constexpr std::string_view kReductions[] = {"sum", "mean", "max", "min", "norm"};
  const bool reduces =
      std::find(std::begin(kReductions), std::end(kReductions), name) != std::end(kReductions);
  return reduces && has("keepdims", "True") ? ChainStep::kReduction : ChainStep::kNone;
}

}  // namespace mxtrain
