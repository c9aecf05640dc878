// SPDX-License-Identifier: Apache-2.0
// Elements at indices, their order, and steps of sequences.
#include <algorithm>
#include <limits>
#include <numeric>

#include "mxtrain/onnx/internal/export_node.h"

namespace mxtrain::onnx {
namespace {

// The length of an axis, which must not depend on the batch.
int64_t FixedLength(const ExportNode& node, int axis) {
  const int64_t length = node.in_shape(0)[axis];
  if (length == TShape::kUnknown) node.Refuse("axis {} depends on the size of the batch", axis);
  return length;
}

// 0 .. ndim - 1 without an axis, and that at the end.
std::vector<int64_t> WithLast(int ndim, int axis) {
  std::vector<int64_t> order;
  for (int i = 0; i < ndim; ++i) {
    if (i != axis) order.push_back(i);
  }
  order.push_back(axis);
  return order;
}

// --- rows of tables ---

void Embedding(ExportNode& node) {
  const std::string rows = node.AsIndices(node.in(0), node.Get<int64_t>("input_dim"));
  node.Out("Gather", {node.in(1), rows}, {{"axis", int64_t{0}}});
}

void Take(ExportNode& node) {
  const int axis = node.Axis("axis");
  if (node.Is("mode", "raise")) node.Refuse("mode = raise has no equivalent; use clip or wrap");
  const std::string at =
      node.AsIndices(node.in(1), FixedLength(node, axis), node.Is("mode", "wrap"));
  node.Out("Gather", {node.in(0), at}, {{"axis", int64_t{axis}}});
}

// --- one element of every column ---

// `keep`: the axis stays, with length 1.
void PickAlong(ExportNode& node, int axis, bool wrap, bool keep) {
  std::string at = node.AsIndices(node.in(1), FixedLength(node, axis), wrap);
  if (node.in_shape(1).ndim() < node.ndim()) at = node.Unsqueeze(at, {axis});
  const Attributes along{{"axis", int64_t{axis}}};
  if (keep || node.ndim() == 1) return node.Out("GatherElements", {node.in(0), at}, along);
  node.Out("Squeeze", {node.Add("GatherElements", {node.in(0), at}, along), node.Ints({axis})});
}

void Pick(ExportNode& node) {
  PickAlong(node, node.Axis("axis"), node.Is("mode", "wrap"), node.Get<bool>("keepdims"));
}

void BatchTake(ExportNode& node) {
  PickAlong(node, 1, false, false);
}

// --- points ---

// [points..., axes] of the indices [axes, points...] that the net has.
std::string Points(ExportNode& node) {
  return node.Transpose(node.AsInt(node.in(1)), WithLast(node.in_shape(1).ndim(), 0));
}

void GatherNd(ExportNode& node) {
  node.Out("GatherND", {node.in(0), Points(node)});
}

// What is compared or joined with float32 numbers.
void RequireFloats(const ExportNode& node) {
  if (node.in_type(0) != DType::kFloat32)
    node.Refuse("its data are {}; only float32 is exported", mxtrain::NameOf(node.in_type(0)));
}

void ScatterNd(ExportNode& node) {
  RequireFloats(node);
  const TShape& out = node.out_shape();
  const std::string zeros =
      node.Add("ConstantOfShape", {node.Ints({out.begin(), out.end()})}, {});  // of float32
  node.Out("ScatterND", {zeros, Points(node), node.in(0)});
}

void OneHot(ExportNode& node) {
  const auto depth = node.Get<int64_t>("depth");
  std::vector<int64_t> classes(static_cast<size_t>(depth));
  std::iota(classes.begin(), classes.end(), 0);
  const std::string column = node.Unsqueeze(node.AsInt(node.in(0)), {node.ndim()});
  const std::string is_class = node.Add("Equal", {column, node.Ints(classes)});
  const std::string on = node.Scalar(node.Number("on_value")),
                    off = node.Scalar(node.Number("off_value"));
  if (node.Is("dtype", "float32")) return node.Out("Where", {is_class, on, off});
  node.OutAs(node.Text("dtype"), node.Add("Where", {is_class, on, off}));
}

void Diag(ExportNode& node) {
  if (node.ndim() == 1) node.Refuse("matrices made of a vector have no equivalent");
  const int rows = node.Axis("axis1"), columns = node.Axis("axis2");
  const int64_t height = FixedLength(node, rows), width = FixedLength(node, columns);
  const auto k = node.Get<int64_t>("k");
  std::vector<int64_t> order;
  TShape flat = TShape::OfRank(node.ndim() - 1);
  for (int i = 0; i < node.ndim(); ++i) {
    if (i == rows || i == columns) continue;
    flat[static_cast<int>(order.size())] = node.in_shape(0)[i];
    order.push_back(i);
  }
  flat[node.ndim() - 2] = height * width;
  TShape moved = TShape::OfRank(node.ndim());
  order.insert(order.end(), {rows, columns});
  for (int i = 0; i < node.ndim(); ++i)
    moved[i] = node.in_shape(0)[static_cast<int>(order[static_cast<size_t>(i)])];
  const std::string cells = node.Reshape(node.Transpose(node.in(0), order), moved, flat);
  const int64_t first = k < 0 ? -k * width : k;
  std::vector<int64_t> places;
  for (int64_t i = 0; i < node.out_shape()[flat.ndim() - 1]; ++i)
    places.push_back(first + i * (width + 1));
  node.Out("Gather", {cells, node.Ints(places)}, {{"axis", int64_t{-1}}});
}

// --- conditions and extremes ---

void Where(ExportNode& node) {
  if (!(node.in_shape(0) == node.in_shape(1)))
    node.Refuse("its condition {} has another shape than x {}", node.in_shape(0).ToString(),
                node.in_shape(1).ToString());
  node.Out("Where", {node.AsBool(node.in(0)), node.in(1), node.in(2)});
}

// Indices of extremes are float32 numbers.
void ExtremeAlong(ExportNode& node, const std::string& op, int axis, bool keep) {
  const std::string index =
      node.Add(op, {node.in(0)}, {{"axis", int64_t{axis}}, {"keepdims", int64_t{keep}}});
  node.OutAs("float32", index);
}

void ArgExtreme(ExportNode& node) {
  if (node.Is("axis", "None")) node.Refuse("without an axis it searches the whole batch");
  ExtremeAlong(node, node.op() == "argmax" ? "ArgMax" : "ArgMin", node.Axis("axis"),
               node.Get<bool>("keepdims"));
}

void ArgmaxChannel(ExportNode& node) {
  ExtremeAlong(node, "ArgMax", 1, false);
}

// --- order ---

struct Sorted {
  ExportNode::Order order;
  int axis;
};

// The first k elements along the axis; k < 1: all.
Sorted SortedBy(ExportNode& node, int64_t k) {
  if (node.Is("axis", "None")) node.Refuse("without an axis it orders the whole batch");
  const int axis = node.Axis("axis");
  const std::string count = k < 1 ? node.LengthOf(0, axis) : node.Ints({k});
  return {node.TopK(node.in(0), count, axis, !node.Get<bool>("is_ascend")), axis};
}

void TopK(ExportNode& node) {
  const auto [first, axis] = SortedBy(node, node.Get<int64_t>("k"));
  const std::string& type = node.Text("dtype");
  if (node.Is("ret_typ", "indices")) return node.OutAs(type, first.indices);
  if (node.Is("ret_typ", "mask")) {
    const auto filled = [&node](const std::string& like, float value) {
      return node.Add("ConstantOfShape", {node.Add("Shape", {like})},
                      {{"value", Tensor::Floats({1}, {value})}});
    };
    return node.Out("ScatterElements",
                    {filled(node.in(0), 0), first.indices, filled(first.indices, 1)},
                    {{"axis", int64_t{axis}}});
  }
  node.OutIs(first.values);
  if (node.Is("ret_typ", "both")) node.OutAs(type, first.indices, 1);
}

void Sort(ExportNode& node) {
  node.OutIs(SortedBy(node, 0).order.values);
}

void Argsort(ExportNode& node) {
  node.OutAs(node.Text("dtype"), SortedBy(node, 0).order.indices);
}

void Reverse(ExportNode& node) {
  std::vector<int64_t> axes;
  for (const int64_t axis : node.Get<TShape>("axis"))
    axes.push_back(ExportNode::Axis(static_cast<int>(axis), node.ndim()));
  if (axes.empty()) return node.OutIs(node.in(0));
  const auto all = [&](int64_t value) {
    return node.Ints(std::vector<int64_t>(axes.size(), value));
  };
  node.Out("Slice", {node.in(0), all(-1), all(std::numeric_limits<int64_t>::min()), node.Ints(axes),
                     all(-1)});
}

// --- sequences: steps along one of the first two axes, sequences along the other ---

int StepAxis(const ExportNode& node) {
  return node.Get<int>("axis");
}
bool HasLengths(const ExportNode& node) {
  return node.Get<bool>("use_sequence_length");
}
// Lengths within least .. T, as integers.
std::string Lengths(ExportNode& node, int64_t least) {
  const std::string longest = node.LengthOf(0, StepAxis(node));
  const std::string lengths = node.Add("Max", {node.AsInt(node.in(1)), node.Ints({least})});
  return node.Add("Min", {lengths, longest});
}
// A transposition of the first two axes if the steps come first.
std::string StepsSecond(ExportNode& node, const std::string& value, int ndim) {
  if (StepAxis(node) == 1) return value;
  std::vector<int64_t> order(static_cast<size_t>(ndim));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[0], order[1]);
  return node.Transpose(value, order);
}

void SequenceMask(ExportNode& node) {
  if (!HasLengths(node)) return node.OutIs(node.in(0));
  RequireFloats(node);
  const int axis = StepAxis(node);
  std::vector<int64_t> others, rest;
  for (int i = 0; i < node.ndim(); ++i) {
    if (i != axis) others.push_back(i);
    if (i != 1 - axis) rest.push_back(i);
  }
  const std::string steps = node.Unsqueeze(node.PositionsOf(0, axis), others),
                    lengths = node.Unsqueeze(node.AsInt(node.in(1)), rest);
  node.Out("Where",
           {node.Add("Less", {steps, lengths}), node.in(0), node.Scalar(node.Number("value"))});
}

void SequenceLast(ExportNode& node) {
  if (!HasLengths(node)) {
    const std::string last = node.Int(-1);
    return node.Out("Gather", {node.in(0), last}, {{"axis", int64_t{StepAxis(node)}}});
  }
  const std::string last = node.Add("Sub", {Lengths(node, 1), node.Int(1)});
  node.Out("GatherND", {StepsSecond(node, node.in(0), node.ndim()), node.Unsqueeze(last, {1})},
           {{"batch_dims", int64_t{1}}});
}

void SequenceReverse(ExportNode& node) {
  if (!HasLengths(node)) {
    const std::string from = node.Ints({-1}),
                      end = node.Ints({std::numeric_limits<int64_t>::min()});
    return node.Out("Slice", {node.in(0), from, end, node.Ints({0}), node.Ints({-1})});
  }
  const std::string steps = node.Unsqueeze(node.PositionsOf(0, 0), {0}),
                    lengths = node.Unsqueeze(Lengths(node, 0), {1});
  const std::string last = node.Add("Sub", {lengths, node.Int(1)});
  const std::string from = node.Add(
      "Where", {node.Add("Less", {steps, lengths}), node.Add("Sub", {last, steps}), steps});
  const std::string rows =
      node.Add("GatherND", {StepsSecond(node, node.in(0), node.ndim()), node.Unsqueeze(from, {2})},
               {{"batch_dims", int64_t{1}}});
  node.OutIs(StepsSecond(node, rows, node.ndim()));
}

// --- shapes as numbers ---

void ShapeArray(ExportNode& node) {
  node.Out("Shape", {node.in(0)});
}

void SizeArray(ExportNode& node) {
  node.Out("Reshape", {node.Add("Size", {node.in(0)}), node.Ints({1})});
}

}  // namespace

std::vector<ExportEntry> IndexExports() {
  return {
      {"Embedding", Embedding},
      {"take", Take},
      {"pick", Pick},
      {"batch_take", BatchTake},
      {"gather_nd", GatherNd},
      {"scatter_nd", ScatterNd},
      {"one_hot", OneHot},
      {"diag", Diag},
      {"where", Where},
      {"argmax", ArgExtreme},
      {"argmin", ArgExtreme},
      {"argmax_channel", ArgmaxChannel},
      {"topk", TopK},
      {"sort", Sort},
      {"argsort", Argsort},
      {"reverse", Reverse},
      {"SequenceMask", SequenceMask},
      {"SequenceLast", SequenceLast},
      {"SequenceReverse", SequenceReverse},
      {"shape_array", ShapeArray},
      {"size_array", SizeArray},
  };
}

}  // namespace mxtrain::onnx
