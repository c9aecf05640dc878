// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/head.h"

#include <algorithm>
#include <map>

#include "mxtrain/operator/param_of.h"
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

const Node& InputOf(const Graph& graph, const Node& node) {
  return graph.nodes[static_cast<size_t>(node.inputs[0].node)];
}
bool IsOf(const Node& node, std::string_view type) {
  return node.op && node.op->TypeString() == type;
}

// Of what AnchorBoxes or RegionBoxes makes; 0 if that is not known.
int64_t ClassesOfRows(const Symbol& net, const Symbol::Shapes& shapes, const Node& proposals) {
  const Symbol made = net.GetInternals()[proposals.name + "_output"];
  std::map<std::string, TShape> known;
  for (const std::string& name : made.ListArguments()) known[name] = ShapeOf(net, shapes, name);
  const TShape rows = made.InferShape(known).outputs[0];
  return rows.has_rank() && rows.ndim() > 1 ? std::max<int64_t>(rows[1], 0) : 0;
}

// Says of an output whether it is rows of class, score and box: those of PointBoxes, or what
// box_nms keeps of such or of other rows, perhaps the first of them; and of how many classes, if
// PointBoxes made them of convolutions, or AnchorBoxes or RegionBoxes did.
void RecognizeBoxes(const Symbol& net, const Symbol::Shapes& shapes, size_t output, Head* head) {
  const Graph& graph = net.graph();
  if (!head->shape.has_rank() || head->shape.ndim() != 3 || head->shape[2] != 6) return;
  const Node* node = &graph.nodes[static_cast<size_t>(graph.heads[output].node)];
  while (IsOf(*node, "BlockGrad") || IsOf(*node, "slice") || IsOf(*node, "slice_axis"))
    node = &InputOf(graph, *node);
  const Node* proposals = node;
  if (IsOf(*node, "_contrib_box_nms")) {
    head->gives_boxes =
        ParamOf(*node->op, "id_index") == "0" && ParamOf(*node->op, "score_index") == "1" &&
        ParamOf(*node->op, "coord_start") == "2" && ParamOf(*node->op, "out_format") == "corner";
    proposals = &InputOf(graph, *node);
  }
  if (proposals == node) head->gives_boxes = IsOf(*node, "PointBoxes");
  // Classes may have been suppressed one by one before.
  while (IsOf(*proposals, "Reshape") || IsOf(*proposals, "slice") ||
         IsOf(*proposals, "slice_axis") || IsOf(*proposals, "_contrib_box_nms"))
    proposals = &InputOf(graph, *proposals);
  if (IsOf(*proposals, "AnchorBoxes") || IsOf(*proposals, "RegionBoxes"))
    head->box_classes = ClassesOfRows(net, shapes, *proposals);
  if (!IsOf(*proposals, "PointBoxes")) return;
  const Node& scores = InputOf(graph, *proposals);
  if (IsOf(scores, "Convolution"))
    params::Parse(ParamOf(*scores.op, "num_filter"), &head->box_classes);
}

}  // namespace

bool Head::gives_classes() const {
  if (has_loss_of_label()) return loss->kind == LossReport::Head::Kind::kSoftmax;
  const bool softmax = op == "SoftmaxActivation" || op == "SoftmaxOutput" || op == "softmax";
  if (!is_list()) return softmax && has_shape() && shape.ndim() == 4 && shape[1] > 1;
  return width() > 1 && (softmax || static_cast<int64_t>(facts.all_classes.size()) == width());
}

TShape ShapeOf(const Symbol& net, const Symbol::Shapes& shapes, const std::string& argument) {
  const std::vector<std::string> names = net.ListArguments();
  const auto found = static_cast<size_t>(std::ranges::find(names, argument) - names.begin());
  return found < shapes.arguments.size() ? shapes.arguments[found] : TShape();
}

std::vector<Head> HeadsOf(const Symbol& net, const Symbol::Shapes& shapes,
                          const std::vector<std::string>& inputs) {
  std::vector<TShape> of_inputs;
  for (const std::string& input : inputs) of_inputs.push_back(ShapeOf(net, shapes, input));
  std::vector<Head> heads;
  for (const std::string& name : net.ListOutputs()) {
    const size_t k = heads.size();
    Head& head = heads.emplace_back();
    head.name = HeadName(name);
    head.output = static_cast<int>(k);
    head.op = OperatorOf(net, k);
    if (k < shapes.outputs.size()) head.shape = shapes.outputs[k];
    head.inputs = of_inputs;
    RecognizeBoxes(net, shapes, k, &head);
  }
  const LossReport losses(net);
  for (const LossReport::Head& loss : losses.heads()) {
    Head& head = heads[static_cast<size_t>(loss.output)];
    head.loss = loss;
    head.label = loss.label;
  }
  for (const auto& [output, label] : LabelsBesideLosses(net))
    heads[static_cast<size_t>(output)].label = label;
  for (Head& head : heads) {
    if (!head.label.empty()) head.label_shape = ShapeOf(net, shapes, head.label);
  }
  return heads;
}

}  // namespace mxtrain::tasks
