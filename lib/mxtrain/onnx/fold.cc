// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/onnx/internal/fold.h"

#include <algorithm>
#include <map>

#include "mxtrain/base/error.h"

namespace mxtrain::onnx {
namespace {

const std::map<std::string_view, FoldFn>& Folds() {
  static const std::map<std::string_view, FoldFn> folds = [] {
    std::map<std::string_view, FoldFn> all;
    for (const auto& family : {MovingFolds(), ArithmeticFolds()}) {
      for (const FoldEntry& entry : family) all.emplace(entry.op, entry.fold);
    }
    return all;
  }();
  return folds;
}

}  // namespace

const Tensor& Folding::At(size_t i) const {
  Require(Has(i), "an input is missing");
  return *in[i];
}

int64_t Folding::IntOr(const std::string& name, int64_t otherwise) const {
  const auto found = node.attributes.find(name);
  if (found == node.attributes.end()) return otherwise;
  const auto* value = std::get_if<int64_t>(&found->second);
  Require(value, "an attribute is not an integer");
  return *value;
}

float Folding::FloatOr(const std::string& name, float otherwise) const {
  const auto found = node.attributes.find(name);
  if (found == node.attributes.end()) return otherwise;
  const auto* value = std::get_if<float>(&found->second);
  Require(value, "an attribute is not a number");
  return *value;
}

std::optional<std::vector<int64_t>> Folding::Ints(size_t input, const std::string& name) const {
  if (Has(input)) return in[input]->ToInts();
  const auto found = node.attributes.find(name);
  if (found == node.attributes.end()) return std::nullopt;
  const auto* value = std::get_if<std::vector<int64_t>>(&found->second);
  Require(value, "an attribute is not a list of integers");
  return *value;
}

void Folding::CheckRoom(const std::vector<int64_t>& dims, ElementType type) const {
  const int64_t size = Count(dims), bytes = std::max<int64_t>(1, SizeOf(type));
  if (size > most_bytes / bytes)
    Throw(ErrorKind::kConfig,
          "its result has {} elements: the model computes too much from constants", size);
}

bool CanFold(std::string_view op) {
  return Folds().contains(op);
}

std::vector<Tensor> Fold(const Folding& folding) {
  std::vector<Tensor> results = Folds().at(folding.node.op)(folding);
  for (const Tensor& result : results) {
    if (result.dims.size() > static_cast<size_t>(TShape::kMaxDims))
      Throw(ErrorKind::kData, "its result has {} axes", result.dims.size());
  }
  return results;
}

// --- for its families ---

void Require(bool good, const char* what) {
  if (!good) Throw(ErrorKind::kData, "{}", what);
}

size_t AxisOf(int64_t axis, size_t ndim) {
  const auto n = static_cast<int64_t>(ndim);
  Require(axis >= -n && axis < n, "an axis is out of range");
  return static_cast<size_t>(axis < 0 ? axis + n : axis);
}

int64_t Count(const std::vector<int64_t>& dims) {
  return Tensor{ElementType::kInt8, dims, ""}.Size();
}

std::vector<int64_t> StridesOf(const std::vector<int64_t>& dims) {
  Count(dims);
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

std::vector<int64_t> Broadcast(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  std::vector<int64_t> dims(std::max(a.size(), b.size()));
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    Require(x == y || x == 1 || y == 1, "shapes do not broadcast");
    dims[dims.size() - 1 - i] = x == 1 ? y : x;
  }
  return dims;
}

}  // namespace mxtrain::onnx
