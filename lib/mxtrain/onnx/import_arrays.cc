// SPDX-License-Identifier: Apache-2.0
// Reductions.
#include <algorithm>

#include "mxtrain/base/error.h"
#include "mxtrain/onnx/internal/import_node.h"

namespace mxtrain::onnx {
namespace {

void CheckExamplesApart(const ImportNode& node, int axis) {
  if (node.shape(0)[axis] != node.shape(0, 1)[axis]) node.Refuse("it reduces the batch axis");
}

// Axes as a tuple; none: all. Before opset 18 (13 of sums) they are an attribute.
void ReduceBy(ImportNode& node, const std::string& op, Kwargs params) {
  const std::vector<int64_t> axes = node.IntsOfInputOr(1, "axes").value_or(std::vector<int64_t>());
  if (axes.empty() && node.Int("noop_with_empty_axes", 0) != 0) return node.OutIs(node.ref(0));
  std::vector<int64_t> all;
  for (const int64_t axis : axes) all.push_back(node.Axis(axis, node.ndim()));
  for (int i = 0; i < node.ndim() && axes.empty(); ++i) all.push_back(i);
  const bool keep = node.Int("keepdims", 1) != 0;
  for (const int64_t axis : all) CheckExamplesApart(node, static_cast<int>(axis));
  params.emplace_back("axis", TShape(std::span<const int64_t>(all)).ToTuple());
  params.emplace_back("keepdims", keep ? "True" : "False");
  node.Out(op, {node.ref(0)}, params);
}

void ArgExtreme(ImportNode& node, const std::string& op) {
  if (node.Int("select_last_index", 0) != 0) node.Refuse("select_last_index has no equivalent");
  const int axis = node.Axis(node.Int("axis", 0), node.ndim());
  CheckExamplesApart(node, axis);
  node.Out(op, {node.ref(0)},
           {{"axis", params::Print(axis)},
            {"keepdims", node.Int("keepdims", 1) != 0 ? "True" : "False"}});
}

}  // namespace

std::vector<ImportEntry> ArrayImports() {
  return {
      {"ReduceSum", [](ImportNode& node) { ReduceBy(node, "sum", {}); }},
      {"ReduceMean", [](ImportNode& node) { ReduceBy(node, "mean", {}); }},
      {"ReduceProd", [](ImportNode& node) { ReduceBy(node, "prod", {}); }},
      {"ReduceMax", [](ImportNode& node) { ReduceBy(node, "max", {}); }},
      {"ReduceMin", [](ImportNode& node) { ReduceBy(node, "min", {}); }},
      {"ReduceL1",
       [](ImportNode& node) {
         ReduceBy(node, "norm", {{"ord", "1"}});
       }},
      {"ReduceL2",
       [](ImportNode& node) {
         ReduceBy(node, "norm", {{"ord", "2"}});
       }},
      {"ArgMax", [](ImportNode& node) { ArgExtreme(node, "argmax"); }},
      {"ArgMin", [](ImportNode& node) { ArgExtreme(node, "argmin"); }},
  };
}

}  // namespace mxtrain::onnx
