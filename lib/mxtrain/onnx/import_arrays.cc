// SPDX-License-Identifier: Apache-2.0
// Reductions.
#include <algorithm>

#include "mxtrain/base/error.h"
#include "mxtrain/onnx/internal/import_parts.h"

namespace mxtrain::onnx {
namespace {

// Axes; none: all. Before opset 18 (13 of sums) they are an attribute. `of`: what is reduced, the
// input where it is "".
std::string ReducedBy(ImportNode& node, const std::string& op, const std::string& of = "") {
  const std::vector<int64_t> axes = node.IntsOfInputOr(1, "axes").value_or(std::vector<int64_t>());
  const std::string data = of.empty() ? node.ref(0, 1) : of;
  if (axes.empty() && node.Int("noop_with_empty_axes", 0) != 0) return data;
  std::vector<int64_t> all;
  for (const int64_t axis : axes) all.push_back(node.Axis(axis, node.ndim()));
  const int ndim = node.ShapesOf(data)[0].ndim();
  for (int i = 0; i < ndim && axes.empty(); ++i) all.push_back(i);
  return Reduced(node, op, data, all, node.Int("keepdims", 1) != 0);
}

void ReduceBy(ImportNode& node, const std::string& op) {
  node.OutIs(ReducedBy(node, op));
}

void ReduceLogSum(ImportNode& node) {
  node.Out("log", {ReducedBy(node, "sum")});
}

void ReduceSumSquare(ImportNode& node) {
  node.OutIs(ReducedBy(node, "sum", node.Add("square", {node.ref(0, 1)})));
}

// The first of the largest or smallest elements; with select_last_index the last one, which is the
// first from the end.
void ArgExtreme(ImportNode& node, const std::string& op) {
  const int axis = node.Axis(node.Int("axis", 0), node.ndim());
  std::string data = node.ref(0);
  if (node.DependsOnBatch(0, axis)) node.Refuse("it reduces the batch axis");
  const bool last = node.Int("select_last_index", 0) != 0, keep = node.Int("keepdims", 1) != 0;
  if (last) data = node.Add("reverse", {data}, {{"axis", TupleOf({axis})}});
  std::string result =
      node.Add(op, {data}, {{"axis", params::Print(axis)}, {"keepdims", keep ? "True" : "False"}});
  const TShape none = TShape::OfRank(0);
  if (node.ndim() == 1 && !keep) result = node.Reshape(result, {none, none});
  if (!last) return node.OutIs(result);
  node.Out("_rminus_scalar", {result}, {{"scalar", params::Print(node.shape(0)[axis] - 1)}});
}

}  // namespace

std::vector<ImportEntry> ArrayImports() {
  return {
      {"ReduceSum", [](ImportNode& node) { ReduceBy(node, "sum"); }},
      {"ReduceMean", [](ImportNode& node) { ReduceBy(node, "mean"); }},
      {"ReduceProd", [](ImportNode& node) { ReduceBy(node, "prod"); }},
      {"ReduceMax", [](ImportNode& node) { ReduceBy(node, "max"); }},
      {"ReduceMin", [](ImportNode& node) { ReduceBy(node, "min"); }},
      {"ReduceL1", [](ImportNode& node) { ReduceBy(node, "norm1"); }},
      {"ReduceL2", [](ImportNode& node) { ReduceBy(node, "norm2"); }},
      {"ReduceLogSumExp", [](ImportNode& node) { ReduceBy(node, "logsumexp"); }},
      {"ReduceLogSum", ReduceLogSum},
      {"ReduceSumSquare", ReduceSumSquare},
      {"ArgMax", [](ImportNode& node) { ArgExtreme(node, "argmax"); }},
      {"ArgMin", [](ImportNode& node) { ArgExtreme(node, "argmin"); }},
  };
}

}  // namespace mxtrain::onnx
