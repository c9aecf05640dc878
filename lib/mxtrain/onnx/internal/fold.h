// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a node of an ONNX graph gives where all that it reads is known: computed in the types of the
// file, integers and truth values exactly. Floating-point numbers are computed in float64 and
// rounded to their type. Private to onnx.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/onnx/model.h"

namespace mxtrain::onnx {

// A node and its known inputs; null: omitted.
struct Folding {
  const ModelNode& node;
  std::vector<const Tensor*> in;
  int64_t opset;
  int64_t most_bytes;  // of all that it gives

  bool Has(size_t i) const { return i < in.size() && in[i]; }
  const Tensor& At(size_t i) const;  // throws kData if it is missing
  int64_t IntOr(const std::string& name, int64_t otherwise) const;
  float FloatOr(const std::string& name, float otherwise) const;
  // Axes as an attribute or, since some opset, an input.
  std::optional<std::vector<int64_t>> Ints(size_t input, const std::string& name) const;
  // Throws kConfig for a result of this shape that would be larger than most_bytes.
  void CheckRoom(const std::vector<int64_t>& dims, ElementType type) const;
};

// The node's outputs; empty: this use of the operator is not computed here. Throws kData for inputs
// that do not fit.
bool CanFold(std::string_view op);
std::vector<Tensor> Fold(const Folding& folding);

// --- for its families ---

using FoldFn = std::vector<Tensor> (*)(const Folding& folding);
struct FoldEntry {
  const char* op;
  FoldFn fold;
};
std::vector<FoldEntry> MovingFolds();      // fold_moving.cc: of elements that stay as they are
std::vector<FoldEntry> ArithmeticFolds();  // fold_arithmetic.cc

// For operators of one output.
template <std::optional<Tensor> (*kFold)(const Folding&)>
std::vector<Tensor> One(const Folding& f) {
  std::optional<Tensor> result = kFold(f);
  std::vector<Tensor> results;
  if (result) results.push_back(std::move(*result));
  return results;
}

void Require(bool good, const char* what);  // throws kData
size_t AxisOf(int64_t axis, size_t ndim);
int64_t Count(const std::vector<int64_t>& dims);  // throws where it would overflow
std::vector<int64_t> StridesOf(const std::vector<int64_t>& dims);
std::vector<int64_t> Broadcast(const std::vector<int64_t>& a, const std::vector<int64_t>& b);
Tensor ExpandTo(const Tensor& data, const std::vector<int64_t>& dims);
bool IsWhole(ElementType type);  // integers and truth values
// Of a type from numbers. Whole ones that the type does not hold throw kData; real ones are rounded
// to it, towards 0 for integers.
Tensor OfWhole(ElementType type, std::vector<int64_t> dims, const std::vector<int64_t>& values);
Tensor OfReal(ElementType type, std::vector<int64_t> dims, const std::vector<double>& values);

}  // namespace mxtrain::onnx
