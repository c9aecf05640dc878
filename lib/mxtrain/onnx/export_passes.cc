// SPDX-License-Identifier: Apache-2.0
// Changes to a whole ONNX model.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <set>

#include "mxtrain/base/dtype.h"
#include "mxtrain/base/error.h"
#include "mxtrain/onnx/export.h"

namespace mxtrain::onnx {
namespace {

int CountReaders(const Model& model, const std::string& value) {
  int64_t count = 0;
  for (const ModelNode& node : model.nodes) count += std::ranges::count(node.inputs, value);
  for (const ModelValue& output : model.outputs) count += output.name == value;
  return static_cast<int>(count);
}

int64_t IntOf(const ModelNode& node, const std::string& name, int64_t otherwise) {
  const auto found = node.attributes.find(name);
  return found == node.attributes.end() ? otherwise : std::get<int64_t>(found->second);
}

// y = a x + b for each channel.
struct Affine {
  std::vector<double> a, b;
};

std::optional<Affine> AffineOf(const Model& model, const ModelNode& norm) {
  std::vector<std::vector<double>> arrays;  // gamma, beta, mean, variance
  for (size_t i = 1; i < 5; ++i) {
    const auto found = model.initializers.find(norm.inputs[i]);
    if (found == model.initializers.end()) return std::nullopt;
    arrays.push_back(found->second.Doubles());
  }
  const double eps = std::get<float>(norm.attributes.at("epsilon"));
  Affine affine;
  for (size_t c = 0; c < arrays[0].size(); ++c) {
    affine.a.push_back(arrays[0][c] / std::sqrt(arrays[3][c] + eps));
    affine.b.push_back(arrays[1][c] - affine.a[c] * arrays[2][c]);
  }
  return affine;
}

// Multiplies the rows of the weight, an array of which only `node` is a reader.
bool Scale(Model* model, ModelNode* node, const Affine& affine) {
  const bool gemm = node->op == "Gemm";
  if (gemm && IntOf(*node, "transB", 0) != 1) return false;
  std::vector<std::string> arrays(node->inputs.begin() + 1, node->inputs.end());
  for (const std::string& name : arrays) {
    if (!model->initializers.contains(name) || CountReaders(*model, name) != 1) return false;
  }
  Tensor& weight = model->initializers[arrays[0]];
  const size_t rows = affine.a.size();
  if (weight.dims.empty() || weight.dims[0] != static_cast<int64_t>(rows)) return false;
  std::vector<float> values = weight.ToFloats();
  const size_t row = values.size() / rows;
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(values[i] * affine.a[i / row]);
  weight = Tensor::Floats(weight.dims, values);
  std::vector<double> old(rows, 0.0);
  if (arrays.size() > 1) {
    old = model->initializers[arrays[1]].Doubles();
  } else {
    arrays.push_back(arrays[0] + "_folded_bias");
    node->inputs.push_back(arrays[1]);
  }
  std::vector<float> bias;
  for (size_t c = 0; c < rows; ++c)
    bias.push_back(static_cast<float>(old[c] * affine.a[c] + affine.b[c]));
  model->initializers[arrays[1]] = Tensor::Floats({static_cast<int64_t>(rows)}, bias);
  return true;
}

// Nothing: the array stays float32. A rounded weight is nearly the same, a rounded position is
// another one.
std::optional<Tensor> InFloat16(const std::string& name, const Tensor& tensor, bool is_parameter) {
  const std::vector<float> values = tensor.ToFloats();
  Tensor narrow{ElementType::kFloat16, tensor.dims, std::string(values.size() * 2, '\0')};
  bool exact = true, whole = true;
  std::optional<float> beyond;
  for (size_t i = 0; i < values.size(); ++i) {
    const float16 value(values[i]);
    const auto stored = static_cast<float>(value);
    std::memcpy(narrow.bytes.data() + 2 * i, &value.bits, 2);
    exact = exact && (stored == values[i] || std::isnan(values[i]));
    whole = whole && values[i] == std::floor(values[i]);
    if (std::isinf(stored) && !std::isinf(values[i])) beyond = values[i];
  }
  if (exact) return narrow;
  if (whole || !is_parameter) return std::nullopt;
  if (beyond) {
    Throw(ErrorKind::kConfig,
          "'{}' contains {}, which float16 cannot hold (at most 65504); export without --float16",
          name, *beyond);
  }
  return narrow;
}

}  // namespace

int FoldBatchNorm(Model* model) {
  std::map<std::string, size_t> writers;
  for (size_t i = 0; i < model->nodes.size(); ++i) {
    for (const std::string& output : model->nodes[i].outputs) writers[output] = i;
  }
  std::set<size_t> folded;
  for (size_t i = 0; i < model->nodes.size(); ++i) {
    ModelNode& norm = model->nodes[i];
    if (norm.op != "BatchNormalization") continue;
    const auto writer = writers.find(norm.inputs[0]);
    if (writer == writers.end() || CountReaders(*model, norm.inputs[0]) != 1) continue;
    ModelNode& before = model->nodes[writer->second];
    if (before.op != "Conv" && before.op != "Gemm") continue;
    const std::optional<Affine> affine = AffineOf(*model, norm);
    if (!affine || !Scale(model, &before, *affine)) continue;
    before.outputs[0] = norm.outputs[0];
    writers[before.outputs[0]] = writer->second;
    folded.insert(i);
  }
  std::vector<ModelNode> kept;
  std::set<std::string> read;
  for (size_t i = 0; i < model->nodes.size(); ++i) {
    if (folded.contains(i)) continue;
    kept.push_back(std::move(model->nodes[i]));
    read.insert(kept.back().inputs.begin(), kept.back().inputs.end());
  }
  model->nodes = std::move(kept);
  std::erase_if(model->initializers,
                [&read](const auto& array) { return !read.contains(array.first); });
  return static_cast<int>(folded.size());
}

void StoreInFloat16(Model* model, const std::set<std::string>& parameters) {
  std::vector<ModelNode> casts;
  std::map<std::string, Tensor> arrays;
  for (auto& [name, tensor] : model->initializers) {
    std::optional<Tensor> narrow;
    if (tensor.type == ElementType::kFloat && tensor.Size() >= 2)
      narrow = InFloat16(name, tensor, parameters.contains(name));
    if (!narrow) {
      arrays[name] = std::move(tensor);
      continue;
    }
    std::string stored = name + "_float16";
    while (model->initializers.contains(stored)) stored += "_";
    arrays[stored] = std::move(*narrow);
    casts.push_back({"Cast",
                     name + "_cast",
                     "",
                     {stored},
                     {name},
                     {{"to", static_cast<int64_t>(ElementType::kFloat)}}});
  }
  model->initializers = std::move(arrays);
  casts.insert(casts.end(), std::make_move_iterator(model->nodes.begin()),
               std::make_move_iterator(model->nodes.end()));
  model->nodes = std::move(casts);
}

}  // namespace mxtrain::onnx
