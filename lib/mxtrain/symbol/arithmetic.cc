// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/symbol/arithmetic.h"

#include <array>

#include "mxtrain/operator/define_arithmetic.h"

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

Symbol Binary(const char* op, const Symbol& a, const Symbol& b) {
  const std::array operands = {a, b};
  for (const Symbol& operand : operands) CheckOneOutput(op, operand);
  return Symbol::Create(Builtin(), op, "", {}, operands);
}

Symbol Binary(const char* op, const Symbol& a, double scalar) {
  CheckOneOutput(op, a);
  return Symbol::Create(Builtin(), op, "", {{"scalar", params::Print(scalar)}}, {&a, 1});
}

}  // namespace

Symbol operator-(const Symbol& a) {
  return Binary("_mul_scalar", a, -1);
}

MXTRAIN_DEFINE_ARITHMETIC(Symbol)

}  // namespace mxtrain
