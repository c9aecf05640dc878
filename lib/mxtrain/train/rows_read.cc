// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/train/internal/rows_read.h"

#include <algorithm>

#include "mxtrain/base/error.h"
#include "mxtrain/operator/param_of.h"

namespace mxtrain {
namespace {

constexpr int kIndices = 0, kWeight = 1;  // arguments of an embedding

bool ReadsRows(const Node& node) {
  if (!node.op) return false;
  const std::string type = node.op->TypeString();
  return (type == "Embedding" || type == "EmbeddingBag") &&
         ParamOf(*node.op, "sparse_grad") == params::Print(true);
}

[[noreturn]] void Refuse(const Node& node, const std::string& why) {
  Throw(ErrorKind::kConfig, "{}: sparse_grad = True: {}; leave the parameter out",
        DescribeNode(node), why);
}

void CheckOptions(const BindOptions& options, const Node& node) {
  if (options.workers[0].type == DeviceType::kGPU)
    Refuse(node, "only the CPU updates the rows that were read alone");
  if (options.workers.size() > 1 || options.SumsOverDevices())
    Refuse(node, "several workers add their gradients up, of all rows");
  if (options.grad_accum > 1)
    Refuse(node, format("a step of {} batches (train.grad_accum) reads the rows of all of them",
                        options.grad_accum));
  if (options.modes.amp) Refuse(node, "weights in mixed precision are updated as a whole");
}

}  // namespace

std::vector<RowsRead> FindRowsRead(const BindOptions& options, const Symbol& net,
                                   std::span<const DataDesc> arrays) {
  std::vector<RowsRead> found;
  const Graph& graph = net.graph();
  for (const Node& node : graph.nodes) {
    if (!ReadsRows(node)) continue;
    CheckOptions(options, node);
    const NodeEntry weight = node.inputs[kWeight], indices = node.inputs[kIndices];
    const Node &parameter = graph.nodes[static_cast<size_t>(weight.node)],
               &listed = graph.nodes[static_cast<size_t>(indices.node)];
    const auto array = std::ranges::find(arrays, listed.name, &DataDesc::name);
    if (!listed.is_variable() || array == arrays.end())
      Refuse(node, "its data is not an input of the net");
    const bool fed = std::ranges::find(arrays, parameter.name, &DataDesc::name) != arrays.end();
    if (!parameter.is_variable() || fed) Refuse(node, "its weight is not a parameter");
    for (const Node& other : graph.nodes) {
      const bool alike = ReadsRows(other) && other.inputs[kIndices] == indices;
      const auto uses = std::ranges::count(other.inputs, weight);
      if (uses > (alike && other.inputs[kWeight] == weight ? 1 : 0))
        Refuse(node, format("{} reads '{}' too", DescribeNode(other), parameter.name));
    }
    if (std::ranges::find(found, parameter.name, &RowsRead::parameter) == found.end())
      found.push_back({parameter.name, static_cast<size_t>(array - arrays.begin())});
  }
  return found;
}

}  // namespace mxtrain
