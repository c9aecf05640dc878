// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/arithmetic.h"

#include "mxtrain/operator/define_arithmetic.h"
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

MXTRAIN_DEFINE_ARITHMETIC(NDArray)

MXTRAIN_IN_PLACE(+=, "_plus")
MXTRAIN_IN_PLACE(-=, "_minus")
MXTRAIN_IN_PLACE(*=, "_mul")
MXTRAIN_IN_PLACE(/=, "_div")

MXTRAIN_DEFINE_OPERATOR(NDArray, ==, "_equal", "_equal")
MXTRAIN_DEFINE_OPERATOR(NDArray, !=, "_not_equal", "_not_equal")
MXTRAIN_DEFINE_OPERATOR(NDArray, <, "_lesser", "_greater")
MXTRAIN_DEFINE_OPERATOR(NDArray, <=, "_lesser_equal", "_greater_equal")
MXTRAIN_DEFINE_OPERATOR(NDArray, >, "_greater", "_lesser")
MXTRAIN_DEFINE_OPERATOR(NDArray, >=, "_greater_equal", "_lesser_equal")

#undef MXTRAIN_IN_PLACE

}  // namespace mxtrain
