// SPDX-License-Identifier: Apache-2.0
#pragma once
// A parsed symbol file before it becomes a graph: the common part of the three eras of the format.
// Private to symbol/.
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/symbol/graph.h"

namespace mxtrain {

struct FileNode {
  std::string op;  // "" for a variable
  std::string name;
  Attrs params;  // for the operator
  Attrs attrs;   // of the user; five of them bare (attrs.h)
  std::vector<NodeEntry> inputs;
  std::shared_ptr<const OperatorProperty> property;  // made by Upgrade

  bool is_variable() const { return op.empty(); }
};

struct FileGraph {
  int version = 800;  // major * 10000 + minor * 100 + patch; 800 if the file does not say
  bool tells_version = false;
  std::vector<FileNode> nodes;
  std::vector<NodeEntry> heads;
};

// "node 12, Convolution 'conv1'", for errors.
std::string DescribeFileNode(const FileGraph& graph, size_t id);

// Parses the JSON text; every id is in range afterwards. Throws kData.
FileGraph ParseSymbolFile(std::string_view json);

// Upgrades an older file to the current format, in MXNet's order (operators.md 12), and creates the
// properties:
//   all      attributes for inputs stored on the operator ("weight_lr_mult") move to the variable;
//            later operators of the same name get a suffix
//   < 0.9    Pooling without a convention gets `old_pooling_convention` (files without a version);
//            scalar_on_left; the scalar samplers get their current names
//   < 0.9.4  variables get the default initializer of the operator that they feed
//   < 0.9.5  argmax and argmin lose the axis -1
// Missing inputs of files before 0.9 are created when the graph is built.
void UpgradeSymbolFile(const OperatorRegistry& registry, const std::string& old_pooling_convention,
                       FileGraph* graph);

}  // namespace mxtrain
