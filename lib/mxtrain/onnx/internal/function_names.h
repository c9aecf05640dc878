// SPDX-License-Identifier: Apache-2.0
#pragma once
// Functions of elements that are one operator here and one in ONNX, for both directions. Private to
// onnx.
#include <span>
#include <string>
#include <string_view>

namespace mxtrain::onnx {

struct UnaryName {
  const char *ours, *onnx;
};
std::span<const UnaryName> UnaryNames();
const char* OnnxUnary(std::string_view ours);  // null: none
const char* OurUnary(std::string_view onnx);

// act_type of Activation.
const char* OnnxActivation(std::string_view act_type);
const char* OurActivation(std::string_view onnx);

struct BinaryName {
  // What the operator of ONNX gives or takes: numbers; truth values; truth values to be negated;
  // truth values of truth values.
  enum Kind { kNumbers, kComparison, kNegatedComparison, kLogical };
  Kind kind;
  const char* onnx;
  // Of arrays of one shape, of broadcasting arrays, of an array and a number (f(x, s), and f(s, x)
  // unless that is the same or missing: null).
  const char *ours, *broadcast, *scalar, *reversed;
};
std::span<const BinaryName> BinaryNames();
// By either name of arrays, or by a name of a number. Null: none.
const BinaryName* FindBinary(std::string_view ours);
const BinaryName* FindScalar(std::string_view ours, bool* reversed);
// By the name in ONNX.
const BinaryName* FindOnnxBinary(std::string_view onnx);

}  // namespace mxtrain::onnx
