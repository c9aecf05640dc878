// SPDX-License-Identifier: Apache-2.0
// Normalizations and softmaxes.
#include <limits>
#include <numeric>

#include "mxtrain/onnx/internal/export_node.h"

namespace mxtrain::onnx {
namespace {

std::vector<int64_t> AxesFrom(int first, int ndim) {
  std::vector<int64_t> axes(static_cast<size_t>(ndim - first));
  std::iota(axes.begin(), axes.end(), first);
  return axes;
}

// The order of axes that moves `axis` to place `to`, or back.
std::vector<int64_t> Moving(int ndim, int axis, int to, bool back) {
  std::vector<int64_t> order;
  for (int i = 0; i < ndim; ++i) {
    if (i != axis) order.push_back(i);
  }
  order.insert(order.begin() + to, axis);
  if (!back) return order;
  std::vector<int64_t> inverse(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return inverse;
}

// Converts an operator that normalizes along one axis by one of ONNX that knows the axis `at` only.
void WithAxisAt(ExportNode& node, int axis, int at, const std::string& op,
                std::vector<std::string> inputs, const Attributes& attributes) {
  if (axis == at) return node.Out(op, inputs, attributes);
  inputs[0] = node.Transpose(inputs[0], Moving(node.ndim(), axis, at, false));
  const std::string result = node.Add(op, inputs, attributes);
  node.Out("Transpose", {result}, {{"perm", Moving(node.ndim(), axis, at, true)}});
}

void BatchNorm(ExportNode& node) {
  const int axis = node.Axis("axis");
  std::string gamma = node.in(1);
  if (node.Get<bool>("fix_gamma")) {
    const int64_t channels = node.in_shape(0)[axis];
    gamma = node.Floats({channels}, std::vector<float>(static_cast<size_t>(channels), 1.0f));
  }
  WithAxisAt(node, axis, 1, "BatchNormalization",
             {node.in(0), gamma, node.in(2), node.in(3), node.in(4)},
             {{"epsilon", node.Number("eps")}});
}

void LayerNorm(ExportNode& node) {
  WithAxisAt(node, node.Axis("axis"), node.ndim() - 1, "LayerNormalization",
             {node.in(0), node.in(1), node.in(2)},
             {{"axis", int64_t{-1}}, {"epsilon", node.Number("eps")}});
}

void RmsNorm(ExportNode& node) {
  const std::string x = node.in(0), square = node.Add("Mul", {x, x});
  const std::string mean = node.Reduce("ReduceMean", square, {node.ndim() - 1}, true);
  const std::string root =
      node.Add("Sqrt", {node.Add("Add", {mean, node.Scalar(node.Number("eps"))})});
  node.Out("Mul", {node.Add("Div", {x, root}), node.in(1)});
}

void InstanceNorm(ExportNode& node) {
  node.Out("InstanceNormalization", {node.in(0), node.in(1), node.in(2)},
           {{"epsilon", node.Number("eps")}});
}

// Groups are the channels of an instance norm; gamma and beta, of a group or of a channel, follow.
void GroupNorm(ExportNode& node) {
  const auto groups = node.Get<int64_t>("num_groups");
  const TShape& shape = node.in_shape(0);
  const auto count = static_cast<size_t>(groups);
  const std::string rows = node.Add("Reshape", {node.in(0), node.Ints({0, groups, -1})});
  std::string x = node.Add("InstanceNormalization",
                           {rows, node.Floats({groups}, std::vector<float>(count, 1.0f)),
                            node.Floats({groups}, std::vector<float>(count, 0.0f))},
                           {{"epsilon", node.Number("eps")}});
  const bool per_channel = node.in_shape(1)[0] != groups;
  const TShape flat{shape[0], groups, shape.Product(1, shape.ndim()) / groups};
  if (per_channel) x = node.Reshape(x, flat, shape);
  const int ndim = per_channel ? shape.ndim() : 3;
  x = node.Add("Mul", {x, node.AlongAxis(node.in(1), node.in_shape(1)[0], 1, ndim)});
  x = node.Add("Add", {x, node.AlongAxis(node.in(2), node.in_shape(2)[0], 1, ndim)});
  node.OutIs(per_channel ? x : node.Reshape(x, flat, shape));
}

void L2Normalization(ExportNode& node) {
  std::vector<int64_t> axes = AxesFrom(node.Is("mode", "spatial") ? 2 : 1, node.ndim());
  if (node.Is("mode", "channel")) axes = {1};
  const std::string square = node.Add("Mul", {node.in(0), node.in(0)});
  const std::string sum = node.Reduce("ReduceSum", square, axes, true);
  const std::string safe = node.Add("Add", {sum, node.Scalar(node.Number("eps"))});
  node.Out("Div", {node.in(0), node.Add("Sqrt", {safe})});
}

void Lrn(ExportNode& node) {
  node.Out("LRN", {node.in(0)},
           {{"size", node.Get<int64_t>("nsize")},
            {"alpha", node.Number("alpha")},
            {"beta", node.Number("beta")},
            {"bias", node.Number("knorm")}});
}

// Whether an element of a softmax is one of its first `length`.
std::string IsCounted(ExportNode& node) {
  const int axis = node.Axis("axis");
  std::vector<int64_t> others;
  for (int i = 0; i < node.ndim(); ++i) {
    if (i != axis) others.push_back(i);
  }
  const std::string places = node.Unsqueeze(node.PositionsOf(0, axis), others),
                    lengths = node.Unsqueeze(node.AsInt(node.in(1)), {axis});
  return node.Add("Less", {places, lengths});
}

// softmax, log_softmax and softmin.
void Softmax(ExportNode& node) {
  std::string data = node.in(0);
  if (!node.Is("temperature", "None"))
    data = node.Add("Div", {data, node.Scalar(node.Number("temperature"))});
  if (node.op() == "softmin") data = node.Add("Neg", {data});
  const std::string op = node.op() == "log_softmax" ? "LogSoftmax" : "Softmax";
  const Attributes attributes{{"axis", node.Get<int64_t>("axis")}};
  if (!node.Get<bool>("use_length")) return node.Out(op, {data}, attributes);
  const std::string counted = IsCounted(node);
  const float low = std::numeric_limits<float>::lowest();
  data = node.Add("Where", {counted, data, node.Scalar(low)});
  node.Out("Where", {counted, node.Add(op, {data}, attributes), node.Scalar(0)});
}

}  // namespace

std::vector<ExportEntry> NormExports() {
  return {
      {"BatchNorm", BatchNorm},
      {"LayerNorm", LayerNorm},
      {"RMSNorm", RmsNorm},
      {"InstanceNorm", InstanceNorm},
      {"GroupNorm", GroupNorm},
      {"L2Normalization", L2Normalization},
      {"LRN", Lrn},
      {"softmax", Softmax},
      {"log_softmax", Softmax},
      {"softmin", Softmax},
  };
}

}  // namespace mxtrain::onnx
