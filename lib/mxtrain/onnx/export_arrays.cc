// SPDX-License-Identifier: Apache-2.0
// Reductions, products of arrays, elements at indices, constants.
#include <algorithm>

#include "mxtrain/onnx/internal/export_node.h"

namespace mxtrain::onnx {
namespace {

// The axes of a reduction.
std::vector<int64_t> ReducedAxes(const ExportNode& node, bool exclude) {
  std::vector<bool> named(static_cast<size_t>(node.ndim()), false);
  const TShape axes = node.Is("axis", "None") ? TShape::OfRank(0) : node.Get<TShape>("axis");
  for (const int64_t axis : axes)
    named[static_cast<size_t>(ExportNode::Axis(static_cast<int>(axis), node.ndim()))] = true;
  const bool all = axes.ndim() == 0;
  std::vector<int64_t> reduced;
  for (int i = 0; i < node.ndim(); ++i) {
    if (all || named[static_cast<size_t>(i)] != exclude) reduced.push_back(i);
  }
  return reduced;
}

void ReduceBy(ExportNode& node, const std::string& op, bool exclude) {
  const std::vector<int64_t> axes = ReducedAxes(node, exclude);
  const bool keep = node.Get<bool>("keepdims");
  const std::string result = node.Reduce(op, node.in(0), axes, keep);
  // Without axes the result is [1] here, a scalar in ONNX.
  const bool scalar = !keep && static_cast<int>(axes.size()) == node.ndim();
  node.OutIs(scalar ? node.Add("Reshape", {result, node.Ints({1})}) : result);
}

// By the operator's name.
void Reduce(ExportNode& node) {
  static const std::map<std::string_view, const char*> kOps = {{"sum", "ReduceSum"},
                                                               {"mean", "ReduceMean"},
                                                               {"prod", "ReduceProd"},
                                                               {"max", "ReduceMax"},
                                                               {"min", "ReduceMin"}};
  ReduceBy(node, kOps.at(node.op()), node.Get<bool>("exclude"));
}

void Norm(ExportNode& node) {
  ReduceBy(node, node.Is("ord", "1") ? "ReduceL1" : "ReduceL2", false);
}

// --- products ---

std::vector<int64_t> LastTwoSwapped(int ndim) {
  std::vector<int64_t> order;
  for (int i = 0; i < ndim; ++i) order.push_back(i);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return order;
}

// The factors, each transposed if the net says so.
std::vector<std::string> Factors(ExportNode& node) {
  std::vector<std::string> factors;
  for (int i = 0; i < 2; ++i) {
    const bool transposed = node.Get<bool>(i == 0 ? "transpose_a" : "transpose_b");
    factors.push_back(transposed
                          ? node.Transpose(node.in(i), LastTwoSwapped(node.in_shape(i).ndim()))
                          : node.in(i));
  }
  return factors;
}

void BatchDot(ExportNode& node) {
  node.Out("MatMul", Factors(node));
}

void Dot(ExportNode& node) {
  if (node.ndim() != 2 || node.in_shape(1).ndim() != 2)
    node.Refuse("only products of matrices are exported; use batch_dot or FullyConnected");
  node.Out("MatMul", Factors(node));
}

void Gemm2(ExportNode& node) {
  const std::string product = node.Add("MatMul", Factors(node));
  node.Out("Mul", {product, node.Scalar(node.Number("alpha"))});
}

// --- indices ---

// Integers within 0 .. length - 1, as the operators here make of floats.
std::string Indices(ExportNode& node, const std::string& value, int64_t length) {
  const std::string whole =
      node.Add("Cast", {value}, {{"to", static_cast<int64_t>(ElementType::kInt64)}});
  const auto bound = [&node](int64_t number) {
    return node.builder().AddArray(Tensor::Ints({}, {number}), node.name() + "_bound");
  };
  return node.Add("Clip", {whole, bound(0), bound(length - 1)});
}

void Embedding(ExportNode& node) {
  const std::string rows = Indices(node, node.in(0), node.Get<int64_t>("input_dim"));
  node.Out("Gather", {node.in(1), rows}, {{"axis", int64_t{0}}});
}

void Take(ExportNode& node) {
  const int axis = node.Axis("axis");
  const int64_t length = node.in_shape(0)[axis];
  if (!node.Is("mode", "clip")) node.Refuse("mode = {} has no equivalent", node.Text("mode"));
  if (length == TShape::kUnknown) node.Refuse("axis {} depends on the size of the batch", axis);
  node.Out("Gather", {node.in(0), Indices(node, node.in(1), length)}, {{"axis", int64_t{axis}}});
}

void Where(ExportNode& node) {
  if (!(node.in_shape(0) == node.in_shape(1)))
    node.Refuse("its condition {} has another shape than x {}", node.in_shape(0).ToString(),
                node.in_shape(1).ToString());
  node.Out("Where", {node.AsBool(node.in(0)), node.in(1), node.in(2)});
}

// argmax and argmin give float32 numbers.
void ArgExtreme(ExportNode& node) {
  if (node.Is("axis", "None")) node.Refuse("without an axis it searches the whole batch");
  const std::string index = node.Add(
      node.op() == "argmax" ? "ArgMax" : "ArgMin", {node.in(0)},
      {{"axis", int64_t{node.Axis("axis")}}, {"keepdims", int64_t{node.Get<bool>("keepdims")}}});
  node.Out("Cast", {index}, {{"to", int64_t{1}}});
}

// --- constants ---

void Arange(ExportNode& node) {
  if (!node.Is("dtype", "float32"))
    node.Refuse("dtype = {}; only float32 is exported", node.Text("dtype"));
  const int64_t count = node.out_shape()[0];
  if (count == TShape::kUnknown) node.Refuse("how many numbers depends on the size of the batch");
  const bool from_zero = node.Is("stop", "None") && !node.Get<bool>("infer_range");
  const double start = from_zero ? 0 : node.Get<double>("start"), step = node.Get<double>("step");
  const auto repeat = node.Get<int64_t>("repeat");
  std::vector<float> numbers;
  for (int64_t i = 0; i < count; ++i)
    numbers.push_back(static_cast<float>(start + step * static_cast<double>(i / repeat)));
  node.OutIs(node.Floats({count}, numbers));
}

}  // namespace

std::vector<ExportEntry> ArrayExports() {
  return {
      {"sum", Reduce},         {"mean", Reduce},         {"prod", Reduce},        {"max", Reduce},
      {"min", Reduce},         {"norm", Norm},           {"batch_dot", BatchDot}, {"dot", Dot},
      {"linalg_gemm2", Gemm2}, {"Embedding", Embedding}, {"take", Take},          {"where", Where},
      {"_arange", Arange},     {"argmax", ArgExtreme},   {"argmin", ArgExtreme},
  };
}

}  // namespace mxtrain::onnx
