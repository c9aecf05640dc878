// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/executor/internal/run_inputs.h"

#include <algorithm>

#include "mxtrain/base/error.h"

namespace mxtrain::executor {
namespace {

NDArray CheckArray(const TensorSpec& spec, const std::string& name, const NDArray& array) {
  if (array.empty() || !(array.shape() == spec.shape) || array.dtype() != spec.type) {
    Throw(ErrorKind::kConfig, "input '{}' must be {} {}, not {} {}", name, NameOf(spec.type),
          spec.shape.ToString(), array.empty() ? "" : NameOf(array.dtype()),
          array.empty() ? "an empty array" : array.shape().ToString());
  }
  return array.ToPlain();
}

}  // namespace

void CheckInputs(const ExternalBuffers& externals, const std::vector<std::string>& names,
                 std::span<const NDArray> given, RunInputs* inputs) {
  if (given.size() != names.size()) {
    Throw(ErrorKind::kConfig, "the net takes {} inputs ({}), got {} arrays", names.size(),
          join(names, ", "), given.size());
  }
  for (int external : externals.inputs()) {
    const int i = externals[external].input;
    inputs->emplace_back(external, CheckArray(externals[external].spec, names[i], given[i]));
  }
}

void CheckHeadGrads(const ExternalBuffers& externals, const ExecGraph& graph, const Symbol& symbol,
                    std::span<const NDArray> given, RunInputs* inputs) {
  for (int external : externals.head_grads()) {
    const int i = externals[external].head_grad;
    if (inputs->size() >= given.size()) {
      Throw(ErrorKind::kConfig,
            "output {} of the net ({}) needs a head gradient; end the net in a loss, or give one",
            i, symbol.ListOutputs()[i]);
    }
    inputs->emplace_back(
        external, CheckArray(externals[external].spec, graph.nodes[graph.head_grads[i].node].name,
                             given[inputs->size()]));
  }
  if (inputs->size() < given.size())
    Throw(ErrorKind::kConfig, "{} head gradients were given, {} are needed", given.size(),
          inputs->size());
}

void MakeDistinct(const ExternalBuffers& externals, std::span<const NDArray> others,
                  RunInputs* inputs) {
  for (auto at = inputs->begin(); at != inputs->end(); ++at) {
    NDArray& array = at->second;
    const auto same = [var = array.var()](const NDArray& other) { return other.var() == var; };
    const bool taken =
        externals.Owns(array.var()) || std::any_of(others.begin(), others.end(), same) ||
        std::any_of(inputs->begin(), at, [&](const auto& before) { return same(before.second); });
    if (taken) array = array.Copy(externals[at->first].ctx);
  }
}

}  // namespace mxtrain::executor
