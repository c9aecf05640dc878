// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/head.h"

#include "mxtrain/train/evaluation.h"

namespace mxtrain::tasks {
namespace {

std::string OperatorOf(const Symbol& net, size_t output) {
  const Graph& graph = net.graph();
  const Node* node = &graph.nodes[static_cast<size_t>(graph.heads[output].node)];
  while (node->op && node->op->TypeString() == "BlockGrad")
    node = &graph.nodes[static_cast<size_t>(node->inputs[0].node)];
  return node->op ? node->op->TypeString() : "";
}

}  // namespace

bool Head::gives_classes() const {
  if (loss) return loss->kind == LossReport::Head::Kind::kSoftmax;
  if (!is_list() || width() < 2) return false;
  return op == "SoftmaxActivation" || op == "SoftmaxOutput" || op == "softmax" ||
         static_cast<int64_t>(facts.all_classes.size()) == width();
}

std::vector<Head> HeadsOf(const Symbol& net, const std::vector<TShape>& shapes) {
  std::vector<Head> heads;
  for (const std::string& name : net.ListOutputs()) {
    const size_t k = heads.size();
    Head& head = heads.emplace_back();
    head.name = HeadName(name);
    head.output = static_cast<int>(k);
    head.op = OperatorOf(net, k);
    if (k < shapes.size()) head.shape = shapes[k];
  }
  const LossReport losses(net);
  for (const LossReport::Head& loss : losses.heads()) {
    Head& head = heads[static_cast<size_t>(loss.output)];
    head.loss = loss;
    head.label = loss.label;
  }
  return heads;
}

}  // namespace mxtrain::tasks
