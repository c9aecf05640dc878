// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/symbol/arithmetic.h"

#include <array>

namespace mxtrain {
namespace {

// A symbol does not keep the registry that it was made with, and a variable has none.
const OperatorRegistry& Builtin() {
  static const std::shared_ptr<const OperatorRegistry> operators = BuiltinOperators();
  return *operators;
}

void CheckOneOutput(const char* op, const Symbol& operand) {
  if (operand.NumOutputs() == 1) return;
  Throw(ErrorKind::kConfig,
        "{} of a symbol with {} outputs ({}); choose one of them, as in symbol[0]", op,
        operand.NumOutputs(), join(operand.ListOutputs(), ", "));
}

Symbol Call(const char* op, const Symbol& a, const Symbol& b) {
  const std::array operands = {a, b};
  for (const Symbol& operand : operands) CheckOneOutput(op, operand);
  return Symbol::Create(Builtin(), op, "", {}, operands);
}

Symbol Call(const char* op, const Symbol& a, double scalar) {
  CheckOneOutput(op, a);
  return Symbol::Create(Builtin(), op, "", {{"scalar", params::Print(scalar)}}, {&a, 1});
}

}  // namespace

Symbol operator-(const Symbol& a) {
  return Call("_mul_scalar", a, -1);
}

// With a number on the left, `reversed` is the operator of the swapped operands.
#define MXTRAIN_SYMBOL_ARITHMETIC(symbol, name, reversed)    \
  Symbol operator symbol(const Symbol& a, const Symbol& b) { \
    return Call(name, a, b);                                 \
  }                                                          \
  Symbol operator symbol(const Symbol& a, double b) {        \
    return Call(name "_scalar", a, b);                       \
  }                                                          \
  Symbol operator symbol(double a, const Symbol& b) {        \
    return Call(reversed "_scalar", b, a);                   \
  }
MXTRAIN_SYMBOL_ARITHMETIC(+, "_plus", "_plus")
MXTRAIN_SYMBOL_ARITHMETIC(-, "_minus", "_rminus")
MXTRAIN_SYMBOL_ARITHMETIC(*, "_mul", "_mul")
MXTRAIN_SYMBOL_ARITHMETIC(/, "_div", "_rdiv")
#undef MXTRAIN_SYMBOL_ARITHMETIC

}  // namespace mxtrain
