// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pieces that several converters build their layers of. Values are references, as of ImportNode.
// Private to onnx.
#include <string>
#include <vector>

#include "mxtrain/onnx/internal/import_node.h"

namespace mxtrain::onnx {

// Of an array of the import's own.
inline constexpr int64_t kMostOwnElements = int64_t{1} << 24;

std::string TupleOf(const std::vector<int64_t>& values);

// A value and a number: "_mul_scalar", ...
std::string WithNumber(ImportNode& node, const std::string& op, const std::string& value,
                       double number);
// With axes of length 1 in front.
std::string Lifted(ImportNode& node, const std::string& value, int ndim);
// Two values by "add", "sub", "mul", "div", "maximum", ..., of which axes of length 1, also missing
// ones in front, are repeated.
std::string Pair(ImportNode& node, const std::string& op, const std::string& a,
                 const std::string& b);
// Throws kConfig if the shapes do not broadcast.
Shapes BroadcastShapes(const ImportNode& node, const Shapes& a, const Shapes& b);
// With axes of length 1 repeated to the lengths of `like`, whose shape is as large.
std::string RepeatedLike(ImportNode& node, const std::string& value, const std::string& like);
// x where the condition holds, else y; all three broadcast.
std::string Chosen(ImportNode& node, const std::string& condition, const std::string& x,
                   const std::string& y);
std::string Permuted(ImportNode& node, const std::string& value, const std::vector<int64_t>& order);
// [begin, end) of an axis of known length.
std::string Sliced(ImportNode& node, const std::string& value, int axis, int64_t begin,
                   int64_t end);
std::string Joined(ImportNode& node, const std::vector<std::string>& values, int axis);
// "sum", "mean", "max", ... over axes, which stay with length 1 or go. Refuses the batch.
std::string Reduced(ImportNode& node, const std::string& op, const std::string& value,
                    const std::vector<int64_t>& axes, bool keep);
// Products of the matrices of the last two axes; the axes before broadcast.
std::string MatrixProduct(ImportNode& node, const std::string& a, const std::string& b);
// The nearest whole number; halves go to the even one.
std::string RoundedToEven(ImportNode& node, const std::string& value);

// An integer of the array that float32 does not hold, and so no layer; nothing if it has none.
std::optional<int64_t> InexactInteger(const Tensor& tensor);
// Throws kConfig if the input, an array that goes into a layer, has such a one.
void RequireExact(const ImportNode& node, int input);

// A matrix of numbers.
Tensor Transposed(const Tensor& matrix);

// An input beside others of as many axes. Of a constant that has the batch of the file where
// another input has the batch, but for the axis `along`: its only row, for every example.
std::string RefOverBatch(ImportNode& node, int input, int along);

// The length of an axis; refuses one that depends on the size of the batch.
int64_t FixedLength(const ImportNode& node, const std::string& value, int axis);

}  // namespace mxtrain::onnx
