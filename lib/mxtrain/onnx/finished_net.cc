// SPDX-License-Identifier: Apache-2.0
// What is done with a net when all its layers are there.
#include <algorithm>

#include "mxtrain/base/error.h"
#include "mxtrain/onnx/internal/import_node.h"

namespace mxtrain::onnx {

void DropUnread(ImportedNet* of) {
  ImportedNet& net = *of;
  std::map<std::string, std::string> owners;  // layers, by their own arrays
  for (const ImportedNet::Layer& layer : net.layers) {
    for (const auto& [argument, shared] : layer.arguments) {
      if (shared.empty()) owners[layer.name + "_" + argument] = layer.name;
    }
  }
  std::set<std::string> read;
  const auto add = [&](const std::string& reference) {
    read.insert(reference.substr(0, reference.find('.')));
    if (const auto owner = owners.find(reference); owner != owners.end())
      read.insert(owner->second);
  };
  std::ranges::for_each(net.outputs, add);
  for (auto layer = net.layers.rbegin(); layer != net.layers.rend(); ++layer) {
    if (!read.contains(layer->name)) continue;
    std::ranges::for_each(layer->inputs, add);
    for (const auto& [argument, shared] : layer->arguments) {
      if (!shared.empty()) add(shared);
    }
  }
  const auto unread = [&read](const auto& part) { return !read.contains(part.name); };
  for (const ImportedNet::Layer& layer : net.layers) {
    if (!unread(layer)) continue;
    for (const auto& [argument, shared] : layer.arguments) {
      if (shared.empty()) net.arrays.erase(layer.name + "_" + argument);
    }
  }
  for (const ImportedNet::Variable& variable : net.variables) {
    if (unread(variable)) net.arrays.erase(variable.name);
  }
  std::erase_if(net.layers, unread);
  std::erase_if(net.variables, unread);
}

void CheckArrays(const ImportState& state) {
  const Symbol symbol = ToSymbol(state.net, state.registry);
  std::map<std::string, TShape> known;
  for (const ImportedNet::Input& input : state.net.inputs)
    known[input.name] = state.shapes.at(input.name)[0];
  const std::vector<std::string> arguments = symbol.ListArguments(),
                                 states = symbol.ListAuxiliaryStates();
  std::erase_if(known, [&](const auto& input) {
    return std::ranges::find(arguments, input.first) == arguments.end();
  });
  const Symbol::Shapes shapes = symbol.InferShape(known);
  std::set<std::string> taken;
  const auto check = [&](const std::string& name, const TShape& shape) {
    const auto array = state.net.arrays.find(name);
    if (known.contains(name) || (array == state.net.arrays.end() && name.ends_with("_label")))
      return;
    if (array == state.net.arrays.end())
      Throw(ErrorKind::kBug, "the imported net has an array '{}' that is not in the file", name);
    taken.insert(name);
    if (!(ShapeOf(array->second) == shape))
      Throw(ErrorKind::kBug, "the imported net takes '{}' in the shape {}, but it is {}", name,
            shape.ToString(), ShapeOf(array->second).ToString());
  };
  for (size_t i = 0; i < arguments.size(); ++i) check(arguments[i], shapes.arguments[i]);
  for (size_t i = 0; i < states.size(); ++i) check(states[i], shapes.auxiliaries[i]);
  for (const auto& [name, array] : state.net.arrays) {
    if (!taken.contains(name))
      Throw(ErrorKind::kBug, "the imported net does not take the array '{}'", name);
  }
}

}  // namespace mxtrain::onnx
