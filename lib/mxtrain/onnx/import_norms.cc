// SPDX-License-Identifier: Apache-2.0
// Normalizations and softmaxes.
#include <algorithm>

#include "mxtrain/base/error.h"
#include "mxtrain/onnx/internal/import_node.h"

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

void LayerNormalization(ImportNode& node) {
  if (node.Axis(node.Int("axis", -1), node.ndim()) != node.ndim() - 1)
    node.Refuse("only the last axis can be normalized");
  node.NameAfter(node.in(1).array);
  node.Out("LayerNorm", {node.ref(0)}, {{"axis", "-1"}, {"eps", Eps(node, 1e-5f)}},
           GammaAndBeta(node));
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
  if (node.Int("p", 2) != 2 || node.Axis(node.Int("axis", -1), node.ndim()) != 1)
    node.Refuse("only the Euclidean norm over axis 1 has an equivalent");
  node.Out("L2Normalization", {node.ref(0)}, {{"mode", "channel"}, {"eps", "0"}});
}

// Before opset 13 all axes from `axis` on were one.
int SoftmaxAxis(const ImportNode& node) {
  const bool flat = node.opset() < 13;
  const int axis = node.Axis(node.Int("axis", flat ? 1 : -1), node.ndim());
  for (int i = axis + 1; flat && i < node.ndim(); ++i) {
    if (node.shape(0)[i] != 1)
      node.Refuse("before opset 13 it runs over several axes at once, {} to {}", axis,
                  node.ndim() - 1);
  }
  if (node.fixed_batch() && node.DependsOnBatch(0, axis))
    node.RefuseFixed("it runs over axis {}, which holds", axis);
  return axis;
}

void SoftmaxBy(ImportNode& node, const std::string& op) {
  node.Out(op, {node.ref(0)}, {{"axis", params::Print(SoftmaxAxis(node))}});
}

}  // namespace

std::vector<ImportEntry> NormImports() {
  return {
      {"BatchNormalization", BatchNormalization},
      {"LayerNormalization", LayerNormalization},
      {"InstanceNormalization", InstanceNormalization},
      {"GroupNormalization", GroupNormalization},
      {"LRN", Lrn},
      {"LpNormalization", LpNormalization},
      {"Softmax", [](ImportNode& node) { SoftmaxBy(node, "softmax"); }},
      {"LogSoftmax", [](ImportNode& node) { SoftmaxBy(node, "log_softmax"); }},
  };
}

}  // namespace mxtrain::onnx
