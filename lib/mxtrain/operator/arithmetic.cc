// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/arithmetic.h"

#include "mxtrain/operator/imperative.h"

namespace mxtrain {
namespace {

CallParams Scalar(double value) {
  return {{"scalar", value}};
}

NDArray Binary(std::string_view op, const NDArray& a, const NDArray& b) {
  const NDArray in[] = {a, b};
  return Invoke(op, in)[0];
}
NDArray Binary(std::string_view op, const NDArray& a, double b) {
  return Invoke(op, {&a, 1}, Scalar(b))[0];
}

void CallInPlace(std::string_view op, const NDArray& a, const NDArray& b) {
  const NDArray in[] = {a, b};
  InvokeInto(op, in, {&a, 1}, OpReqType::kWriteInplace);
}
void CallInPlace(std::string_view op, const NDArray& a, double b) {
  InvokeInto(op, {&a, 1}, {&a, 1}, OpReqType::kWriteInplace, Scalar(b));
}

}  // namespace

NDArray operator-(const NDArray& a) {
  return Invoke("negative", {&a, 1})[0];
}

// With a number on the left, `reversed` is the operator that takes it as its second operand.
#define MXTRAIN_PURE(symbol, name, reversed)                    \
  NDArray operator symbol(const NDArray& a, const NDArray& b) { \
    return Binary(name, a, b);                                  \
  }                                                             \
  NDArray operator symbol(const NDArray& a, double b) {         \
    return Binary(name "_scalar", a, b);                        \
  }                                                             \
  NDArray operator symbol(double a, const NDArray& b) {         \
    return Binary(reversed "_scalar", b, a);                    \
  }
#define MXTRAIN_IN_PLACE(symbol, name)                     \
  NDArray& operator symbol(NDArray& a, const NDArray& b) { \
    CallInPlace(name, a, b);                               \
    return a;                                              \
  }                                                        \
  NDArray& operator symbol(NDArray& a, double b) {         \
    CallInPlace(name "_scalar", a, b);                     \
    return a;                                              \
  }                                                        \
  NDArray operator symbol(NDArray&& a, const NDArray& b) { \
    return a symbol b;                                     \
  }                                                        \
  NDArray operator symbol(NDArray&& a, double b) {         \
    return a symbol b;                                     \
  }

MXTRAIN_PURE(+, "_plus", "_plus")
MXTRAIN_PURE(-, "_minus", "_rminus")
MXTRAIN_PURE(*, "_mul", "_mul")
MXTRAIN_PURE(/, "_div", "_rdiv")

MXTRAIN_IN_PLACE(+=, "_plus")
MXTRAIN_IN_PLACE(-=, "_minus")
MXTRAIN_IN_PLACE(*=, "_mul")
MXTRAIN_IN_PLACE(/=, "_div")

MXTRAIN_PURE(==, "_equal", "_equal")
MXTRAIN_PURE(!=, "_not_equal", "_not_equal")
MXTRAIN_PURE(<, "_lesser", "_greater")
MXTRAIN_PURE(<=, "_lesser_equal", "_greater_equal")
MXTRAIN_PURE(>, "_greater", "_lesser")
MXTRAIN_PURE(>=, "_greater_equal", "_lesser_equal")

#undef MXTRAIN_PURE
#undef MXTRAIN_IN_PLACE

}  // namespace mxtrain
