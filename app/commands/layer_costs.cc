// SPDX-License-Identifier: Apache-2.0
#include "app/commands/layer_costs.h"

namespace mxtrain::commands {

std::vector<LayerCost> CostsOfLayers(const session::Session& session) {
  const Graph& graph = session.net().symbol.graph();
  const InferredSpecs specs = InferSpecs(
      graph, config::PlannedShapes(session.net(), session.config().data.batch_size), {}, false);
  const executor::BindRequest request = session.MakeBindRequest(false);
  std::vector<LayerCost> layers;
  std::vector<bool> counted(graph.nodes.size());
  for (size_t id = 0; id < graph.nodes.size(); ++id) {
    const Node& node = graph.nodes[id];
    if (node.is_variable()) continue;
    LayerCost layer{node.name, node.op->TypeString(), node.where, {}, 0, 0};
    std::vector<TShape> in;
    for (int i = 0; i < node.num_args; ++i) {
      const NodeEntry e = node.inputs[i];
      in.push_back(specs.shapes[e.node][e.index]);
      const Node& source = graph.nodes[e.node];
      if (source.kind == Node::Kind::kVariable && !request.inputs.contains(source.name) &&
          !counted[e.node]) {
        counted[e.node] = true;
        layer.parameters += in.back().Size();
      }
    }
    layer.flops = 2 * node.op->ForwardFlops(in, specs.shapes[id]);
    for (int i = 0; i < node.op->NumVisibleOutputs(); ++i)
      layer.outputs.push_back(specs.shapes[id][i]);
    layers.push_back(std::move(layer));
  }
  return layers;
}

}  // namespace mxtrain::commands
