// SPDX-License-Identifier: Apache-2.0
// Normalizations and softmaxes.
#include <algorithm>

#include "mxtrain/base/error.h"
#include "mxtrain/onnx/internal/import_parts.h"

namespace mxtrain::onnx {
namespace {

std::string Eps(const ImportNode& node, float otherwise) {
  return params::Print(node.Float("epsilon", otherwise));
}

// A one-dimensional argument.
ImportNode::Argument Vector(const ImportNode& node, int i, const std::string& name) {
  const Tensor& tensor = node.array(i);
  if (tensor.dims.size() != 1)
    node.Refuse("its input {} has {} axes instead of one", i, tensor.dims.size());
  return node.ArgumentOf(i, name);
}

void BatchNormalization(ImportNode& node) {
  if (node.Int("training_mode", 0) != 0)
    node.Refuse("it is in training mode; export the model in evaluation mode");
  if (node.opset() < 9 && node.Int("spatial", 1) == 0)
    node.Refuse("statistics for every place (spatial = 0) have no equivalent");
  if (node.opset() < 7 && node.Int("is_test", 0) == 0)
    node.Refuse("it is in training mode; export the model in evaluation mode");
  std::vector<ImportNode::Argument> arguments;
  const char* names[] = {"gamma", "beta", "moving_mean", "moving_var"};
  for (int i = 0; i < 4; ++i) arguments.push_back(Vector(node, i + 1, names[i]));
  node.NameAfter(node.in(2).array);
  node.NameAfter(node.in(1).array);
  node.Out("BatchNorm", {node.ref(0)},
           {{"eps", Eps(node, 1e-5f)},
            {"momentum", params::Print(node.Float("momentum", 0.9f))},
            {"fix_gamma", "False"}},
           std::move(arguments));
}

// A missing beta is zeros.
std::vector<ImportNode::Argument> GammaAndBeta(const ImportNode& node) {
  std::vector<ImportNode::Argument> arguments{Vector(node, 1, "gamma")};
  if (node.has(2)) {
    arguments.push_back(Vector(node, 2, "beta"));
  } else {
    const std::vector<int64_t> dims = arguments[0].tensor.dims;
    arguments.push_back(
        {"beta", Tensor::Floats(dims, std::vector<float>(static_cast<size_t>(dims[0]), 0.0f)), ""});
  }
  return arguments;
}

// The axes from `axis` on, and their number of elements.
struct LastAxes {
  std::vector<int64_t> axes;
  int first = 0;
};
LastAxes LastAxesOf(const ImportNode& node) {
  LastAxes last;
  last.first = node.Axis(node.Int("axis", -1), node.ndim());
  for (int i = last.first; i < node.ndim(); ++i) {
    if (node.DependsOnBatch(0, i)) node.Refuse("it normalizes over the batch");
    last.axes.push_back(i);
  }
  return last;
}

// Whether an input is an array of the file with an element for each of those that are normalized.
bool IsForAll(const ImportNode& node, int i, const LastAxes& last) {
  if (!node.has(i)) return true;
  if (!node.is_array(i)) return false;
  const TShape& shape = node.shape(0);
  const std::vector<int64_t> wanted(shape.begin() + last.first, shape.end());
  return node.array(i).dims == wanted;
}

// An array of the file as one axis.
ImportNode::Argument Flat(const ImportNode& node, int i, const std::string& name) {
  Tensor flat = node.array(i);
  if (flat.dims.size() == 1) return node.ArgumentOf(i, name);
  flat.dims = {flat.Size()};
  return node.ArgumentOf(i, name, std::move(flat), "flat");
}

// The normalized axes as one, in `op`, and back.
void NormalizeLast(ImportNode& node, const std::string& op, const LastAxes& last,
                   const Kwargs& params, std::vector<ImportNode::Argument> arguments) {
  node.NameAfter(node.in(1).array);
  if (last.axes.size() == 1) return node.Out(op, {node.ref(0)}, params, std::move(arguments));
  Shapes rows = node.in(0).shape;
  for (TShape& shape : rows) {
    std::vector<int64_t> dims(shape.begin(), shape.begin() + last.first);
    dims.push_back(shape.Product(last.first, shape.ndim()));
    shape = TShape(std::span<const int64_t>(dims));
  }
  const std::string data = node.Reshape(node.ref(0), rows);
  node.OutIs(node.Reshape(node.Add(op, {data}, params, std::move(arguments)), node.in(0).shape));
}

void LayerNormalization(ImportNode& node) {
  const LastAxes last = LastAxesOf(node);
  const bool wants_more = node.num_outputs() > 1;
  if (!wants_more && IsForAll(node, 1, last) && IsForAll(node, 2, last)) {
    std::vector<ImportNode::Argument> arguments{Flat(node, 1, "gamma")};
    const std::vector<int64_t> dims = arguments[0].tensor.dims;
    arguments.push_back(
        node.has(2)
            ? Flat(node, 2, "beta")
            : ImportNode::Argument{
                  "beta", Tensor::Floats(dims, std::vector<float>(static_cast<size_t>(dims[0]))),
                  ""});
    return NormalizeLast(node, "LayerNorm", last, {{"axis", "-1"}, {"eps", Eps(node, 1e-5f)}},
                         std::move(arguments));
  }
  const std::string x = node.ref(0), mean = Reduced(node, "mean", x, last.axes, true);
  const std::string centred = Pair(node, "sub", x, mean);
  const std::string variance =
      Reduced(node, "mean", node.Add("square", {centred}), last.axes, true);
  const std::string inverse =
      node.Add("rsqrt", {WithNumber(node, "_plus_scalar", variance, node.Float("epsilon", 1e-5f))});
  std::string result = Pair(node, "mul", Pair(node, "mul", centred, inverse), node.ref(1));
  if (node.has(2)) result = Pair(node, "add", result, node.ref(2));
  node.OutIs(result);
  if (node.num_outputs() > 1 && !node.output(1).empty()) node.OutIs(mean, 1);
  if (node.num_outputs() > 2 && !node.output(2).empty()) node.OutIs(inverse, 2);
}

void RmsNormalization(ImportNode& node) {
  const LastAxes last = LastAxesOf(node);
  if (IsForAll(node, 1, last))
    return NormalizeLast(node, "RMSNorm", last, {{"eps", Eps(node, 1e-5f)}},
                         {Flat(node, 1, "gamma")});
  const std::string x = node.ref(0);
  const std::string square = Reduced(node, "mean", node.Add("square", {x}), last.axes, true);
  const std::string inverse =
      node.Add("rsqrt", {WithNumber(node, "_plus_scalar", square, node.Float("epsilon", 1e-5f))});
  node.OutIs(Pair(node, "mul", Pair(node, "mul", x, inverse), node.ref(1)));
}

// (x - mean) / (standard deviation + 1e-9)
void MeanVarianceNormalization(ImportNode& node) {
  std::vector<int64_t> axes = node.Ints("axes", {0, 2, 3});
  for (int64_t& axis : axes) axis = node.Axis(axis, node.ndim());
  const std::string x = node.ref(0);
  const std::string centred = Pair(node, "sub", x, Reduced(node, "mean", x, axes, true));
  const std::string variance = Reduced(node, "mean", node.Add("square", {centred}), axes, true);
  const std::string deviation =
      WithNumber(node, "_plus_scalar", node.Add("sqrt", {variance}), 1e-9);
  node.OutIs(Pair(node, "div", centred, deviation));
}

void InstanceNormalization(ImportNode& node) {
  node.NameAfter(node.in(1).array);
  node.Out("InstanceNorm", {node.ref(0)}, {{"eps", Eps(node, 1e-5f)}}, GammaAndBeta(node));
}

void GroupNormalization(ImportNode& node) {
  node.NameAfter(node.in(1).array);
  node.Out("GroupNorm", {node.ref(0)},
           {{"num_groups", params::Print(node.Int("num_groups", 1))}, {"eps", Eps(node, 1e-5f)}},
           GammaAndBeta(node));
}

void Lrn(ImportNode& node) {
  node.Out("LRN", {node.ref(0)},
           {{"nsize", params::Print(node.Int("size", 1))},
            {"alpha", params::Print(node.Float("alpha", 1e-4f))},
            {"beta", params::Print(node.Float("beta", 0.75f))},
            {"knorm", params::Print(node.Float("bias", 1))}});
}

void LpNormalization(ImportNode& node) {
  const int64_t p = node.Int("p", 2);
  const int axis = node.Axis(node.Int("axis", -1), node.ndim());
  if (p != 1 && p != 2) Throw(ErrorKind::kData, "{}: its p is {}", node.Describe(), p);
  if (p == 2 && axis == 1 && node.opset() < 22)
    return node.Out("L2Normalization", {node.ref(0)}, {{"mode", "channel"}, {"eps", "0"}});
  const std::string x = node.ref(0);
  const std::string length = Reduced(node, p == 1 ? "norm1" : "norm2", x, {axis}, true);
  // Of nothing but zeros zeros stay.
  node.OutIs(Pair(node, "div", x, WithNumber(node, "_maximum_scalar", length, 1e-37)));
}

// Before opset 13 all axes from `axis` on were one.
void SoftmaxBy(ImportNode& node, const std::string& op) {
  const bool flat = node.opset() < 13;
  const int ndim = node.ndim(), axis = node.Axis(node.Int("axis", flat ? 1 : -1), ndim);
  if (node.fixed_batch() && node.DependsOnBatch(0, axis))
    node.RefuseFixed("it runs over axis {}, which holds", axis);
  int longer = 0;  // axes behind it that have more than one element
  for (int i = axis + 1; flat && i < ndim; ++i) longer += node.shape(0)[i] != 1;
  if (longer == 0) return node.Out(op, {node.ref(0)}, {{"axis", params::Print(axis)}});
  Shapes rows = node.in(0).shape;
  for (TShape& s : rows) s = TShape{s.Product(0, axis), s.Product(axis, ndim)};
  const std::string data = node.Reshape(node.ref(0), rows);
  node.OutIs(node.Reshape(node.Add(op, {data}, {{"axis", "1"}}), node.in(0).shape));
}

}  // namespace

std::vector<ImportEntry> NormImports() {
  return {
      {"BatchNormalization", BatchNormalization},
      {"LayerNormalization", LayerNormalization},
      {"RMSNormalization", RmsNormalization},
      {"MeanVarianceNormalization", MeanVarianceNormalization},
      {"InstanceNormalization", InstanceNormalization},
      {"GroupNormalization", GroupNormalization},
      {"LRN", Lrn},
      {"LpNormalization", LpNormalization},
      {"Softmax", [](ImportNode& node) { SoftmaxBy(node, "softmax"); }},
      {"LogSoftmax", [](ImportNode& node) { SoftmaxBy(node, "log_softmax"); }},
  };
}

}  // namespace mxtrain::onnx
