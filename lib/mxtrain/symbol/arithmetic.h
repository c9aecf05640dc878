// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arithmetic of symbols, found by argument-dependent lookup, as that of arrays
// (operator/arithmetic.h): `data * 2 - other`. Each makes one unnamed operator of this library.
//
// Each operand has one output, else kConfig. Two symbols have one shape, checked when shapes are
// inferred; nothing is broadcast (Symbol::Create with broadcast_add does).
#include "mxtrain/symbol/symbol.h"

namespace mxtrain {

MXTRAIN_API Symbol operator-(const Symbol& a);

MXTRAIN_API Symbol operator+(const Symbol& a, const Symbol& b);
MXTRAIN_API Symbol operator-(const Symbol& a, const Symbol& b);
MXTRAIN_API Symbol operator*(const Symbol& a, const Symbol& b);
MXTRAIN_API Symbol operator/(const Symbol& a, const Symbol& b);

MXTRAIN_API Symbol operator+(const Symbol& a, double b);
MXTRAIN_API Symbol operator-(const Symbol& a, double b);
MXTRAIN_API Symbol operator*(const Symbol& a, double b);
MXTRAIN_API Symbol operator/(const Symbol& a, double b);

MXTRAIN_API Symbol operator+(double a, const Symbol& b);
MXTRAIN_API Symbol operator-(double a, const Symbol& b);
MXTRAIN_API Symbol operator*(double a, const Symbol& b);
MXTRAIN_API Symbol operator/(double a, const Symbol& b);

}  // namespace mxtrain
