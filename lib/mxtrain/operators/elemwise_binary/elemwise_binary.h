// SPDX-License-Identifier: Apache-2.0
#pragma once
// Functions of two arguments: value and both slopes of each, for host and device. They define three
// families: arrays of one shape (elemwise_binary), an array and a number (elemwise_scalar),
// broadcasting arrays (broadcast_binary).
#include <cmath>
#include <string>
#include <type_traits>
#include <vector>

#include "mxtrain/base/macros.h"
#include "mxtrain/operator/simple_op.h"
#include "mxtrain/operator/vector_math.h"

namespace mxtrain::elemwise_binary {

// What the slopes read. kNone: they are constant.
enum class Slopes { kNone, kInputs };

// Names: of the element-wise operator (may be ""), of its scalar variants (without "_scalar":
// "_plus", reversed "_rminus" or ""), of the broadcasting operator. Left and Right are d Value / d
// a and d Value / d b.
#define MXTRAIN_BINARY(Id, name, scalar, reversed, broadcast, slopes, elementwise, VALUE, LEFT, \
                       RIGHT)                                                                   \
  struct Id {                                                                                   \
    static constexpr const char* kName = name;                                                  \
    static constexpr const char* kScalarName = scalar;                                          \
    static constexpr const char* kReversedName = reversed;                                      \
    static constexpr const char* kBroadcastName = broadcast;                                    \
    static constexpr Slopes kSlopes = Slopes::slopes;                                           \
    static constexpr Elementwise kElementwise = Elementwise::elementwise;                       \
    template <typename T>                                                                       \
    [[gnu::always_inline]] MXTRAIN_HD static T Value(T a, T b) {                                \
      return static_cast<T>(VALUE);                                                             \
    }                                                                                           \
    template <typename T>                                                                       \
    [[gnu::always_inline]] MXTRAIN_HD static constexpr T Left([[maybe_unused]] T a,             \
                                                              [[maybe_unused]] T b) {           \
      return static_cast<T>(LEFT);                                                              \
    }                                                                                           \
    template <typename T>                                                                       \
    [[gnu::always_inline]] MXTRAIN_HD static constexpr T Right([[maybe_unused]] T a,            \
                                                               [[maybe_unused]] T b) {          \
      return static_cast<T>(RIGHT);                                                             \
    }                                                                                           \
  };

// Integers are WrappingInt: division by zero is 0.
template <typename T>
MXTRAIN_HD T FloorDivide(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return std::floor(a / b);
  else
    return a / b - ((a % b != 0) && ((a < 0) != (b < 0)));
}
// The remainder with the sign of the divisor; 0 for a divisor of 0.
template <typename T>
MXTRAIN_HD T Mod(T a, T b) {
  if (b == T(0)) return T(0);
  if constexpr (std::is_floating_point_v<T>) {
    const T r = std::fmod(a, b);
    return r != T(0) && (r < T(0)) != (b < T(0)) ? r + b : r;
  } else {
    return a - b * FloorDivide(a, b);
  }
}
template <typename T>
MXTRAIN_HD T Hypotenuse(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::hypot(a, b);
  } else {
    const double x(a), y(b);
    return T(std::sqrt(x * x + y * y));
  }
}
template <typename T>
[[gnu::always_inline]] MXTRAIN_HD inline T Pow(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return vector_math::Pow(a, b);
  else
    return T(std::pow(static_cast<double>(a), static_cast<double>(b)));
}
template <typename T>
[[gnu::always_inline]] MXTRAIN_HD inline T Log(T a) {
  if constexpr (std::is_floating_point_v<T>)
    return vector_math::Log(a);
  else
    return T(std::log(static_cast<double>(a)));
}

// clang-format off
//             type          elementwise     scalar            reversed     broadcast                  slopes    padding      value                    left                          right
MXTRAIN_BINARY(Add,          "elemwise_add", "_plus",          "",          "broadcast_add",           kNone,    kZeroToZero, a + b,                   1,                            1)
MXTRAIN_BINARY(Subtract,     "elemwise_sub", "_minus",         "_rminus",   "broadcast_sub",           kNone,    kZeroToZero, a - b,                   1,                            -1)
MXTRAIN_BINARY(Multiply,     "elemwise_mul", "_mul",           "",          "broadcast_mul",           kInputs,  kZeroToZero, a * b,                   b,                            a)
MXTRAIN_BINARY(DivideOp,     "elemwise_div", "_div",           "_rdiv",     "broadcast_div",           kInputs,  kYes,        a / b,                   T(1) / b,                     -a / b / b)
MXTRAIN_BINARY(Power,        "_power",       "_power",         "_rpower",   "broadcast_power",         kInputs,  kYes,        Pow(a, b),               b * Pow(a, b - 1),            Pow(a, b) * Log(a))
MXTRAIN_BINARY(Maximum,      "_maximum",     "_maximum",       "",          "broadcast_maximum",       kInputs,  kZeroToZero, a > b || a != a ? a : b, a >= b,                       a < b)
MXTRAIN_BINARY(Minimum,      "_minimum",     "_minimum",       "",          "broadcast_minimum",       kInputs,  kZeroToZero, a < b || a != a ? a : b, a <= b,                       a > b)
MXTRAIN_BINARY(ModOp,        "_mod",         "_mod",           "_rmod",     "broadcast_mod",           kInputs,  kZeroToZero, Mod(a, b),               b != T(0),                    b == T(0) ? T(0) : -FloorDivide(a, b))
MXTRAIN_BINARY(Hypot,        "_hypot",       "_hypot",         "",          "broadcast_hypot",         kInputs,  kYes,        Hypotenuse(a, b),        a / Hypotenuse(a, b),         b / Hypotenuse(a, b))
MXTRAIN_BINARY(Equal,        "_equal",       "_equal",         "",          "broadcast_equal",         kNone,    kYes,        a == b,                  0,                            0)
MXTRAIN_BINARY(NotEqual,     "_not_equal",   "_not_equal",     "",          "broadcast_not_equal",     kNone,    kZeroToZero, a != b,                  0,                            0)
MXTRAIN_BINARY(Greater,      "_greater",     "_greater",       "",          "broadcast_greater",       kNone,    kZeroToZero, a > b,                   0,                            0)
MXTRAIN_BINARY(GreaterEqual, "_greater_equal", "_greater_equal", "",        "broadcast_greater_equal", kNone,    kYes,        a >= b,                  0,                            0)
MXTRAIN_BINARY(Lesser,       "_lesser",      "_lesser",        "",          "broadcast_lesser",        kNone,    kZeroToZero, a < b,                   0,                            0)
MXTRAIN_BINARY(LesserEqual,  "_lesser_equal", "_lesser_equal", "",          "broadcast_lesser_equal",  kNone,    kYes,        a <= b,                  0,                            0)
MXTRAIN_BINARY(LogicalAnd,   "_logical_and", "_logical_and",   "",          "broadcast_logical_and",   kNone,    kZeroToZero, a != T(0) && b != T(0),  0,                            0)
MXTRAIN_BINARY(LogicalOr,    "_logical_or",  "_logical_or",    "",          "broadcast_logical_or",    kNone,    kZeroToZero, a != T(0) || b != T(0),  0,                            0)
MXTRAIN_BINARY(LogicalXor,   "_logical_xor", "_logical_xor",   "",          "broadcast_logical_xor",   kNone,    kZeroToZero, (a != T(0)) != (b != T(0)), 0,                         0)
// clang-format on
#undef MXTRAIN_BINARY

// v(Functor{}) for every function.
template <typename V>
void ForEachBinary(V&& v) {
  v(Add{}), v(Subtract{}), v(Multiply{}), v(DivideOp{}), v(Power{}), v(Maximum{}), v(Minimum{}),
      v(ModOp{}), v(Hypot{}), v(Equal{});
  v(NotEqual{}), v(Greater{}), v(GreaterEqual{}), v(Lesser{}), v(LesserEqual{}), v(LogicalAnd{}),
      v(LogicalOr{}), v(LogicalXor{});
}

// "_greater_equal" as older files spell it: "_Greater_Equal", and without the inner underscores
// "_GreaterEqual".
std::string Capitalised(const std::string& name);
std::string CamelCase(const std::string& name);

}  // namespace mxtrain::elemwise_binary
