#pragma once
// A symbol file as it stands, before it is a graph: what the three eras of the format have in common. Private to symbol/.
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/symbol/graph.h"

namespace mxtrain {

struct FileNode {
  std::string op;  // "" for a variable
  std::string name;
  Attrs params;  // for the operator
  Attrs attrs;   // of the user, five of them bare (attrs.h)
  std::vector<NodeEntry> inputs;
  std::shared_ptr<const OperatorProperty> property;  // made by Upgrade

  bool is_variable() const { return op.empty(); }
};

struct FileGraph {
  int version = 800;  // major * 10000 + minor * 100 + patch; 800 when the file does not say
  bool tells_version = false;
  std::vector<FileNode> nodes;
  std::vector<NodeEntry> heads;
};

// "node 12, Convolution 'conv1'", for errors.
std::string DescribeFileNode(const FileGraph& graph, size_t id);

// Reads the JSON text; every id is in range afterwards. Throws kData.
FileGraph ParseSymbolFile(std::string_view json);

// Brings an older file to today's form, in the order of the reference system (operators.md 12), and makes the properties:
//   all      attributes of inputs kept on the operator ("weight_lr_mult") move to the variable; later operators of one name get a suffix
//   < 0.9    Pooling without a convention gets `old_pooling_convention` (files that do not tell their version); scalar_on_left; the scalar
//            samplers bear today's names
//   < 0.9.4  variables get the default initialiser of the operator that they feed
//   < 0.9.5  argmax and argmin lose the axis -1
// Missing inputs of files before 0.9 are made when the graph is built.
void UpgradeSymbolFile(const OperatorRegistry& registry, const std::string& old_pooling_convention, FileGraph* graph);

}  // namespace mxtrain
