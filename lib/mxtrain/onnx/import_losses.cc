// SPDX-License-Identifier: Apache-2.0
// Losses, as values: what they are for the labels that the graph is given.
#include <algorithm>

#include "mxtrain/base/error.h"
#include "mxtrain/onnx/internal/import_parts.h"

namespace mxtrain::onnx {
namespace {

// -log_probability [N, C, ...] at the class of each place [N, ...], times the weight of the class,
// without places whose class is ignored; then the sum, or the mean by weight.
std::string LikelihoodLoss(ImportNode& node, const std::string& log_probability) {
  const std::string reduction = node.Word("reduction", "mean");
  if (reduction != "none" && reduction != "sum" && reduction != "mean")
    Throw(ErrorKind::kData, "{}: there is no reduction '{}'", node.Describe(), reduction);
  const std::string classes = node.ref(1);
  std::string loss =
      node.Add("negative", {node.Add("pick", {log_probability, classes}, {{"axis", "1"}})});
  std::string weight;
  if (node.has(2))
    weight = node.Add("take", {node.ref(2), classes}, {{"axis", "0"}, {"mode", "clip"}});
  if (node.has("ignore_index")) {
    const std::string counts = WithNumber(node, "_not_equal_scalar", classes,
                                          static_cast<double>(node.Int("ignore_index", 0)));
    weight = weight.empty() ? counts : node.Add("elemwise_mul", {weight, counts});
    loss = node.Add("where", {counts, loss, node.Add("zeros_like", {loss})});
  }
  if (!weight.empty()) loss = node.Add("elemwise_mul", {loss, weight});
  if (reduction == "none") return loss;
  std::vector<int64_t> axes;
  for (int i = 0; i < node.ShapesOf(loss)[0].ndim(); ++i) axes.push_back(i);
  if (reduction == "sum") return Reduced(node, "sum", loss, axes, false);
  if (weight.empty()) return Reduced(node, "mean", loss, axes, false);
  return node.Add("elemwise_div", {Reduced(node, "sum", loss, axes, false),
                                   Reduced(node, "sum", weight, axes, false)});
}

void NegativeLogLikelihoodLoss(ImportNode& node) {
  node.OutIs(LikelihoodLoss(node, node.ref(0)));
}

void SoftmaxCrossEntropyLoss(ImportNode& node) {
  const std::string log_probability = node.Add("log_softmax", {node.ref(0)}, {{"axis", "1"}});
  node.OutIs(LikelihoodLoss(node, log_probability));
  if (node.num_outputs() > 1 && !node.output(1).empty()) node.OutIs(log_probability, 1);
}

}  // namespace

std::vector<ImportEntry> LossImports() {
  return {
      {"NegativeLogLikelihoodLoss", NegativeLogLikelihoodLoss},
      {"SoftmaxCrossEntropyLoss", SoftmaxCrossEntropyLoss},
  };
}

}  // namespace mxtrain::onnx
