// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arithmetic and comparison of arrays, found by argument-dependent lookup. Each is one imperative
// call (imperative.h), so it only pushes, on every device and in every layout, and the engine
// orders it with everything else on the same arrays.
//
// Two arrays have one shape, type, device and runtime, else kConfig names both; nothing is
// broadcast (Invoke("broadcast_add", ...) does). A number becomes one of the array's type. Integers
// wrap around, and division by zero is 0 (operator/wrapping_int.h).
#include "mxtrain/ndarray/ndarray.h"

namespace mxtrain {

MXTRAIN_API NDArray operator-(const NDArray& a);

MXTRAIN_API NDArray operator+(const NDArray& a, const NDArray& b);
MXTRAIN_API NDArray operator-(const NDArray& a, const NDArray& b);
MXTRAIN_API NDArray operator*(const NDArray& a, const NDArray& b);
MXTRAIN_API NDArray operator/(const NDArray& a, const NDArray& b);

MXTRAIN_API NDArray operator+(const NDArray& a, double b);
MXTRAIN_API NDArray operator-(const NDArray& a, double b);
MXTRAIN_API NDArray operator*(const NDArray& a, double b);
MXTRAIN_API NDArray operator/(const NDArray& a, double b);

MXTRAIN_API NDArray operator+(double a, const NDArray& b);
MXTRAIN_API NDArray operator-(double a, const NDArray& b);
MXTRAIN_API NDArray operator*(double a, const NDArray& b);
MXTRAIN_API NDArray operator/(double a, const NDArray& b);

// Write into the elements of `a`, so through a view. `b` may be `a` or overlap it.
MXTRAIN_API NDArray& operator+=(NDArray& a, const NDArray& b);
MXTRAIN_API NDArray& operator-=(NDArray& a, const NDArray& b);
MXTRAIN_API NDArray& operator*=(NDArray& a, const NDArray& b);
MXTRAIN_API NDArray& operator/=(NDArray& a, const NDArray& b);

MXTRAIN_API NDArray& operator+=(NDArray& a, double b);
MXTRAIN_API NDArray& operator-=(NDArray& a, double b);
MXTRAIN_API NDArray& operator*=(NDArray& a, double b);
MXTRAIN_API NDArray& operator/=(NDArray& a, double b);

// The same on a temporary handle, such as `a.Slice(0, 2) += b`; the handle is returned by value.
MXTRAIN_API NDArray operator+=(NDArray&& a, const NDArray& b);
MXTRAIN_API NDArray operator-=(NDArray&& a, const NDArray& b);
MXTRAIN_API NDArray operator*=(NDArray&& a, const NDArray& b);
MXTRAIN_API NDArray operator/=(NDArray&& a, const NDArray& b);

MXTRAIN_API NDArray operator+=(NDArray&& a, double b);
MXTRAIN_API NDArray operator-=(NDArray&& a, double b);
MXTRAIN_API NDArray operator*=(NDArray&& a, double b);
MXTRAIN_API NDArray operator/=(NDArray&& a, double b);

// Element by element: 1 where it holds, else 0, in the type of the arrays. Whether two handles are
// the same elements is NDArray::SameView.
MXTRAIN_API NDArray operator==(const NDArray& a, const NDArray& b);
MXTRAIN_API NDArray operator!=(const NDArray& a, const NDArray& b);
MXTRAIN_API NDArray operator<(const NDArray& a, const NDArray& b);
MXTRAIN_API NDArray operator<=(const NDArray& a, const NDArray& b);
MXTRAIN_API NDArray operator>(const NDArray& a, const NDArray& b);
MXTRAIN_API NDArray operator>=(const NDArray& a, const NDArray& b);

MXTRAIN_API NDArray operator==(const NDArray& a, double b);
MXTRAIN_API NDArray operator!=(const NDArray& a, double b);
MXTRAIN_API NDArray operator<(const NDArray& a, double b);
MXTRAIN_API NDArray operator<=(const NDArray& a, double b);
MXTRAIN_API NDArray operator>(const NDArray& a, double b);
MXTRAIN_API NDArray operator>=(const NDArray& a, double b);

MXTRAIN_API NDArray operator==(double a, const NDArray& b);
MXTRAIN_API NDArray operator!=(double a, const NDArray& b);
MXTRAIN_API NDArray operator<(double a, const NDArray& b);
MXTRAIN_API NDArray operator<=(double a, const NDArray& b);
MXTRAIN_API NDArray operator>(double a, const NDArray& b);
MXTRAIN_API NDArray operator>=(double a, const NDArray& b);

}  // namespace mxtrain
