// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/onnx/internal/function_names.h"

namespace mxtrain::onnx {
namespace {

constexpr UnaryName kUnary[] = {
    {"abs", "Abs"},       {"sign", "Sign"},       {"ceil", "Ceil"},
    {"floor", "Floor"},   {"sqrt", "Sqrt"},       {"reciprocal", "Reciprocal"},
    {"exp", "Exp"},       {"log", "Log"},         {"sin", "Sin"},
    {"cos", "Cos"},       {"tan", "Tan"},         {"arcsin", "Asin"},
    {"arccos", "Acos"},   {"arctan", "Atan"},     {"sinh", "Sinh"},
    {"cosh", "Cosh"},     {"tanh", "Tanh"},       {"arcsinh", "Asinh"},
    {"arccosh", "Acosh"}, {"arctanh", "Atanh"},   {"erf", "Erf"},
    {"relu", "Relu"},     {"sigmoid", "Sigmoid"}, {"softsign", "Softsign"},
    {"negative", "Neg"},
};

constexpr UnaryName kActivations[] = {
    {"relu", "Relu"},         {"sigmoid", "Sigmoid"},   {"tanh", "Tanh"},
    {"softrelu", "Softplus"}, {"softsign", "Softsign"},
};

using B = BinaryName;
// clang-format off
constexpr BinaryName kBinary[] = {
    {B::kNumbers,           "Add",            "elemwise_add",   "broadcast_add",           "_plus_scalar",          nullptr},
    {B::kNumbers,           "Sub",            "elemwise_sub",   "broadcast_sub",           "_minus_scalar",         "_rminus_scalar"},
    {B::kNumbers,           "Mul",            "elemwise_mul",   "broadcast_mul",           "_mul_scalar",           nullptr},
    {B::kNumbers,           "Div",            "elemwise_div",   "broadcast_div",           "_div_scalar",           "_rdiv_scalar"},
    {B::kNumbers,           "Pow",            "_power",         "broadcast_power",         "_power_scalar",         "_rpower_scalar"},
    {B::kNumbers,           "Max",            "_maximum",       "broadcast_maximum",       "_maximum_scalar",       nullptr},
    {B::kNumbers,           "Min",            "_minimum",       "broadcast_minimum",       "_minimum_scalar",       nullptr},
    {B::kComparison,        "Equal",          "_equal",         "broadcast_equal",         "_equal_scalar",         nullptr},
    {B::kNegatedComparison, "Equal",          "_not_equal",     "broadcast_not_equal",     "_not_equal_scalar",     nullptr},
    {B::kComparison,        "Greater",        "_greater",       "broadcast_greater",       "_greater_scalar",       nullptr},
    {B::kComparison,        "GreaterOrEqual", "_greater_equal", "broadcast_greater_equal", "_greater_equal_scalar", nullptr},
    {B::kComparison,        "Less",           "_lesser",        "broadcast_lesser",        "_lesser_scalar",        nullptr},
    {B::kComparison,        "LessOrEqual",    "_lesser_equal",  "broadcast_lesser_equal",  "_lesser_equal_scalar",  nullptr},
    {B::kLogical,           "And",            "_logical_and",   "broadcast_logical_and",   "_logical_and_scalar",   nullptr},
    {B::kLogical,           "Or",             "_logical_or",    "broadcast_logical_or",    "_logical_or_scalar",    nullptr},
    {B::kLogical,           "Xor",            "_logical_xor",   "broadcast_logical_xor",   "_logical_xor_scalar",   nullptr},
};
// clang-format on

const char* OnnxOf(std::span<const UnaryName> names, std::string_view ours) {
  for (const UnaryName& name : names) {
    if (ours == name.ours) return name.onnx;
  }
  return nullptr;
}
const char* OursOf(std::span<const UnaryName> names, std::string_view onnx) {
  for (const UnaryName& name : names) {
    if (onnx == name.onnx) return name.ours;
  }
  return nullptr;
}

}  // namespace

std::span<const UnaryName> UnaryNames() {
  return kUnary;
}
const char* OnnxUnary(std::string_view ours) {
  return OnnxOf(kUnary, ours);
}
const char* OurUnary(std::string_view onnx) {
  return OursOf(kUnary, onnx);
}
const char* OnnxActivation(std::string_view act_type) {
  return OnnxOf(kActivations, act_type);
}
const char* OurActivation(std::string_view onnx) {
  return OursOf(kActivations, onnx);
}

std::span<const BinaryName> BinaryNames() {
  return kBinary;
}

const BinaryName* FindBinary(std::string_view ours) {
  for (const BinaryName& name : kBinary) {
    if (ours == name.ours || ours == name.broadcast) return &name;
  }
  return nullptr;
}

const BinaryName* FindScalar(std::string_view ours, bool* reversed) {
  for (const BinaryName& name : kBinary) {
    *reversed = name.reversed && ours == name.reversed;
    if (*reversed || ours == name.scalar) return &name;
  }
  return nullptr;
}

const BinaryName* FindOnnxBinary(std::string_view onnx) {
  for (const BinaryName& name : kBinary) {
    if (onnx == name.onnx) return &name;
  }
  return nullptr;
}

}  // namespace mxtrain::onnx
