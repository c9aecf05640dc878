// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/train/internal/rebuilding.h"

#include <algorithm>

namespace mxtrain {

Symbol Rebuilding::Of(const std::vector<NodeEntry>& heads) {
  const std::vector<bool> needed = Needed(heads);
  built_.assign(graph_.nodes.size(), Symbol());
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    if (!needed[i]) continue;
    const Node& node = graph_.nodes[i];
    std::vector<Symbol> inputs;
    for (const NodeEntry& input : node.inputs) inputs.push_back(At(input));
    built_[i] = node.is_variable() ? Symbol::Variable(node.name, node.attrs, node.where)
                                   : build_(node, inputs);
  }
  std::vector<Symbol> outputs;
  for (const NodeEntry& head : heads) outputs.push_back(At(head));
  return outputs.size() == 1 ? outputs[0] : Symbol::Group(outputs);
}

std::vector<bool> Rebuilding::Needed(const std::vector<NodeEntry>& heads) const {
  std::vector<bool> needed(graph_.nodes.size());
  const auto need = [&](const NodeEntry& entry) {
    if (!given_.contains(entry)) needed[static_cast<size_t>(entry.node)] = true;
  };
  std::for_each(heads.begin(), heads.end(), need);
  for (size_t i = graph_.nodes.size(); i-- > 0;) {
    if (!needed[i]) continue;
    std::for_each(graph_.nodes[i].inputs.begin(), graph_.nodes[i].inputs.end(), need);
  }
  return needed;
}

Symbol Rebuilding::At(const NodeEntry& entry) const {
  const auto given = given_.find(entry);
  if (given != given_.end()) return given->second;
  const Symbol& node = built_[static_cast<size_t>(entry.node)];
  return node.NumOutputs() == 1 && entry.index == 0 ? node : node[entry.index];
}

}  // namespace mxtrain
