// SPDX-License-Identifier: Apache-2.0
// Constants computed by the library's own operators.
#include <algorithm>
#include <cmath>

#include "mxtrain/base/error.h"
#include "mxtrain/onnx/internal/fold.h"
#include "mxtrain/onnx/internal/import_node.h"
#include "mxtrain/operator/imperative.h"

namespace mxtrain::onnx {
namespace {

void CheckExact(const Tensor& tensor, const ImportNode& node) {
  if (!IsInteger(tensor.type)) return;
  const std::vector<int64_t> numbers = tensor.ToInts();
  const auto too_large = std::ranges::find_if(
      numbers, [](int64_t number) { return number < -kMostExact || number > kMostExact; });
  if (too_large != numbers.end())
    node.Refuse("it computes with the integer {}; up to 2^24 they are exact here", *too_large);
}

// The value of a layer of the net, by those of the layers and variables before it.
std::vector<NDArray> Run(const ImportedNet& net, const ImportedNet::Layer& layer,
                         const OperatorRegistry& registry, Runtime& runtime,
                         const std::map<std::string, NDArray>& values) {
  const auto property = registry.Create(layer.op, layer.params);
  const auto array_of = [&](const std::string& argument) {
    const std::string& shared = layer.arguments.at(argument);
    const Tensor& tensor = net.arrays.at(shared.empty() ? layer.name + "_" + argument : shared);
    return NDArray::FromVector(runtime, ShapeOf(tensor), tensor.ToFloats());
  };
  std::vector<NDArray> in, aux;
  for (const std::string& input : layer.inputs) in.push_back(values.at(input));
  const std::vector<std::string> names = property->ListArguments();
  for (size_t i = in.size(); i < names.size(); ++i) in.push_back(array_of(names[i]));
  for (const std::string& name : property->ListAuxiliaryStates()) aux.push_back(array_of(name));
  return Invoke(layer.op, in, layer.params, aux);
}

std::map<std::string, NDArray> ValuesOf(const ImportedNet& net, const OperatorRegistry& registry,
                                        Runtime& runtime) {
  std::map<std::string, NDArray> values;
  for (const ImportedNet::Variable& variable : net.variables)
    values[variable.name] =
        NDArray::FromVector(runtime, variable.shape, net.arrays.at(variable.name).ToFloats());
  for (const ImportedNet::Layer& layer : net.layers) {
    const std::vector<NDArray> outputs = Run(net, layer, registry, runtime, values);
    const std::vector<std::string> names = registry.Create(layer.op, layer.params)->ListOutputs();
    for (size_t i = 0; i < outputs.size(); ++i)
      values[outputs.size() == 1 ? layer.name : layer.name + "." + names[i]] = outputs[i];
  }
  return values;
}

// Functions of elements give numbers of no axes for such; layers have at least one axis.
bool IsElementwise(const std::string& op) {
  static const std::set<std::string> ops = [] {
    std::set<std::string> all{"Dropout", "Identity", "Cast", "CastLike"};
    for (const ImportEntry& entry : ElementwiseImports()) all.insert(entry.op);
    return all;
  }();
  return ops.contains(op);
}

Tensor ResultOf(const NDArray& array, ElementType type, const ModelNode& node,
                const std::vector<const Tensor*>& inputs) {
  const std::vector<float> floats = array.ToVector();
  std::vector<double> values(floats.begin(), floats.end());
  if (IsWhole(type))
    std::ranges::for_each(values, [](double& value) { value = std::nearbyint(value); });
  std::vector<int64_t> dims(array.shape().begin(), array.shape().end());
  const auto has_axes = [](const Tensor* input) { return input && !input->dims.empty(); };
  if (IsElementwise(node.op) && std::ranges::none_of(inputs, has_axes)) dims.clear();
  return OfReal(type, std::move(dims), values);
}

}  // namespace

std::vector<std::optional<Tensor>> ComputeByLayers(const ModelNode& node, ImportFn convert,
                                                   ImportState& state,
                                                   const std::vector<const Tensor*>& inputs,
                                                   int64_t most_bytes) {
  ImportState inner(state.model, state.registry);
  inner.computed_bytes = state.file_bytes + state.computed_bytes;
  ImportNode step(node, &inner);
  std::vector<ElementType> types;
  for (size_t i = 0; i < inputs.size(); ++i) {
    types.push_back(inputs[i] ? inputs[i]->type : ElementType::kFloat);
    if (!inputs[i]) continue;
    CheckExact(*inputs[i], step);
    const std::shared_ptr<const Tensor> alias(std::shared_ptr<void>(), inputs[i]);
    ImportValue& value = inner.values[node.inputs[i]];
    value.shape = {ShapeOf(*inputs[i]), ShapeOf(*inputs[i])};
    value.constant = {alias, alias};
    value.type = inputs[i]->type;
    inner.readers[node.inputs[i]] += 2;  // nothing is joined with what comes before
  }
  for (const std::string& output : node.outputs) inner.readers[output] = 1;
  convert(step);
  int64_t elements = 0;  // each result has at most 2^44
  for (const auto& [reference, shapes] : inner.shapes) {
    elements += shapes[0].Size();
    if (elements > most_bytes / 4)
      step.Refuse("its results are too large: the model computes too much from constants");
  }
  if (!state.runtime) {
    RuntimeOptions options;
    options.engine = "naive";
    options.threads = 1;
    // The registry outlives the import: no ownership.
    state.runtime = std::make_shared<Runtime>(
        options, std::shared_ptr<const OperatorRegistry>(std::shared_ptr<void>(), &state.registry));
  }
  const std::map<std::string, NDArray> values = ValuesOf(inner.net, state.registry, *state.runtime);
  std::vector<std::optional<Tensor>> results;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const auto found = inner.values.find(node.outputs[i]);
    results.emplace_back();
    if (node.outputs[i].empty() || found == inner.values.end()) continue;
    if (found->second.is_constant()) {
      results.back() = *found->second.constant[0];
    } else {
      results.back() =
          ResultOf(values.at(found->second.reference), TypeOfOutput(node, i, types), node, inputs);
    }
  }
  return results;
}

}  // namespace mxtrain::onnx
