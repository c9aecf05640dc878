// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/chain_step.h"

#include <algorithm>
#include <string_view>

namespace mxtrain {

ChainStep ChainStepOf(const OperatorProperty& op) {
  if (op.elementwise() != Elementwise::kNo) return ChainStep::kElementwise;
  const std::string name = op.TypeString();
  const auto is_one_of = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (name == "Dropout") return ChainStep::kDropout;
  const bool one_argument = op.ListArguments().size() == 1;
  if (one_argument && is_one_of({"softmax", "log_softmax", "softmin"})) return ChainStep::kRows;
  if (!is_one_of({"sum", "mean", "max", "min", "norm"})) return ChainStep::kNone;
  bool keeps_axes = false;
  for (const auto& [key, value] : op.GetParams())
    keeps_axes |= key == "keepdims" && value == "True";
  return keeps_axes ? ChainStep::kReduction : ChainStep::kNone;
}

}  // namespace mxtrain
