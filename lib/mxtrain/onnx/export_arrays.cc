// SPDX-License-Identifier: Apache-2.0
// Reductions, sums along an axis, products of arrays, constants.
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

void ReduceBy(ExportNode& node, const std::string& op, const std::string& data, bool exclude) {
  const std::vector<int64_t> axes = ReducedAxes(node, exclude);
  if (axes.empty()) return node.OutIs(data);  // which ONNX reads as all
  const bool keep = node.Get<bool>("keepdims");
  const std::string result = node.Reduce(op, data, axes, keep);
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
  ReduceBy(node, kOps.at(node.op()), node.in(0), node.Get<bool>("exclude"));
}

// NaN counts as the number that changes nothing.
void ReduceWithoutNan(ExportNode& node) {
  const bool sum = node.op() == "nansum";
  const std::string is_nan = node.Add("IsNaN", {node.in(0)});
  const std::string data = node.Add("Where", {is_nan, node.Scalar(sum ? 0 : 1), node.in(0)});
  ReduceBy(node, sum ? "ReduceSum" : "ReduceProd", data, node.Get<bool>("exclude"));
}

void Norm(ExportNode& node) {
  ReduceBy(node, node.Is("ord", "1") ? "ReduceL1" : "ReduceL2", node.in(0), false);
}

void Cumsum(ExportNode& node) {
  if (node.Is("axis", "None")) node.Refuse("without an axis it adds up the whole batch");
  const std::string& dtype = node.Text("dtype");
  if (dtype == "uint8") node.Refuse("dtype = uint8 has no equivalent");
  const bool same = dtype == "None" || dtype == NameOf(node.in_type(0));
  const std::string data = same ? node.in(0) : node.As(dtype, node.in(0));
  node.Out("CumSum", {data, node.Int(node.Axis("axis"))});
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

// --- constants ---

// start, start + step, ..., each `repeat` times; one value has a step of 0.
struct Ramp {
  double start, step;
  int64_t repeat;
};

Ramp RampOf(const ExportNode& node) {
  if (node.op() == "_zeros" || node.op() == "_ones")
    return {node.op() == "_ones" ? 1.0 : 0.0, 0, 1};
  if (node.op() == "_full") return {node.Get<double>("value"), 0, 1};
  const auto start = node.Get<double>("start");
  if (node.op() == "_linspace") {
    const int64_t steps = node.Get<int64_t>("num") - (node.Get<bool>("endpoint") ? 1 : 0);
    const double whole = node.Get<double>("stop") - start;
    return {start, steps > 0 ? whole / static_cast<double>(steps) : 0, 1};
  }
  const bool like = node.op() == "arange_like";
  const bool from_zero = !like && node.Is("stop", "None") && !node.Get<bool>("infer_range");
  return {from_zero ? 0 : start, node.Get<double>("step"), node.Get<int64_t>("repeat")};
}

// The array is part of the model. For integers the numbers are truncated.
void OutArray(ExportNode& node, const std::string& dtype, const std::vector<double>& numbers) {
  const TShape& shape = node.out_shape();
  const std::vector<int64_t> dims(shape.begin(), shape.end());
  if (dtype == "float32") return node.OutIs(node.Floats(dims, {numbers.begin(), numbers.end()}));
  std::vector<int64_t> whole;
  for (const double number : numbers) whole.push_back(node.Truncated(number));
  const std::string array =
      node.builder().AddArray(Tensor::Ints(dims, whole), node.name() + "_constant");
  node.OutAs(dtype, array);
}

void Numbers(ExportNode& node) {
  const TShape& shape = node.out_shape();
  if (std::ranges::find(shape, TShape::kUnknown) != shape.end())
    node.Refuse("its shape depends on the size of the batch");
  const Ramp ramp = RampOf(node);
  std::vector<double> numbers(static_cast<size_t>(shape.Size()));
  for (size_t i = 0; i < numbers.size(); ++i) {
    const int64_t at = static_cast<int64_t>(i) / ramp.repeat;
    numbers[i] = ramp.start + ramp.step * static_cast<double>(at);
  }
  const bool like = node.op() == "arange_like";
  OutArray(node, like ? NameOf(node.in_type(0)) : node.Text("dtype"), numbers);
}

void Eye(ExportNode& node) {
  const TShape& shape = node.out_shape();
  const auto k = node.Get<int64_t>("k");
  std::vector<double> numbers;
  for (int64_t row = 0; row < shape[0]; ++row) {
    for (int64_t column = 0; column < shape[1]; ++column)
      numbers.push_back(column == row + k ? 1 : 0);
  }
  OutArray(node, node.Text("dtype"), numbers);
}

}  // namespace

std::vector<ExportEntry> ArrayExports() {
  return {
      {"sum", Reduce},
      {"mean", Reduce},
      {"prod", Reduce},
      {"max", Reduce},
      {"min", Reduce},
      {"nansum", ReduceWithoutNan},
      {"nanprod", ReduceWithoutNan},
      {"norm", Norm},
      {"cumsum", Cumsum},
      {"batch_dot", BatchDot},
      {"dot", Dot},
      {"linalg_gemm2", Gemm2},
      {"_zeros", Numbers},
      {"_ones", Numbers},
      {"_full", Numbers},
      {"_arange", Numbers},
      {"arange_like", Numbers},
      {"_linspace", Numbers},
      {"_eye", Eye},
  };
}

}  // namespace mxtrain::onnx
