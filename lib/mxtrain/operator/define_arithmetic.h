// SPDX-License-Identifier: Apache-2.0
#pragma once
// The table of arithmetic operators, for the sources that define them, of arrays and of symbols.

// Of two operands, or one and a number, by Binary(operator, a, b). With a number on the left,
// `reversed` is the operator that takes it as its second operand.
#define MXTRAIN_DEFINE_OPERATOR(Type, symbol, name, reversed) \
  Type operator symbol(const Type& a, const Type& b) {        \
    return Binary(name, a, b);                                \
  }                                                           \
  Type operator symbol(const Type& a, double b) {             \
    return Binary(name "_scalar", a, b);                      \
  }                                                           \
  Type operator symbol(double a, const Type& b) {             \
    return Binary(reversed "_scalar", b, a);                  \
  }

#define MXTRAIN_DEFINE_ARITHMETIC(Type)                 \
  MXTRAIN_DEFINE_OPERATOR(Type, +, "_plus", "_plus")    \
  MXTRAIN_DEFINE_OPERATOR(Type, -, "_minus", "_rminus") \
  MXTRAIN_DEFINE_OPERATOR(Type, *, "_mul", "_mul")      \
  MXTRAIN_DEFINE_OPERATOR(Type, /, "_div", "_rdiv")
