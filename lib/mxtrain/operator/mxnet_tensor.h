// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arrays as MXNet's operators see them (docs/mxnet_forms.md): TBlob with its members' names, and
// the element-wise part of mshadow, for the CPU and, with mxnet_kernel.cuh, for GPUs.
//
//   MSHADOW_TYPE_SWITCH(ret->type_flag_, DType, {
//     mshadow::Tensor<xpu, 2, DType> out = ret->get<xpu, 2, DType>(s);
//     mshadow::Tensor<xpu, 2, DType> in = src.get<xpu, 2, DType>(s);
//     ASSIGN_DISPATCH(out, req, F<mshadow_op::square>(in) * DType(2));
//   });
//
// An expression is computed element by element when it is assigned, in one loop and in the type
// of its operands; it must not outlive the arrays. Its tensors have one shape, else kConfig at the
// assignment. Products of matrices, reductions and broadcasting are no expressions: write the loop
// (mxnet_kernel.h).
#include <algorithm>
#include <cstdint>
#include <span>
#include <type_traits>

#include "mxtrain/device/mxnet_stream.h"
#include "mxtrain/operator/kernel.h"

#define MSHADOW_XINLINE inline MXTRAIN_HD

namespace mxtrain::mxnet {

using real_t = float;
using index_t = int64_t;

// f(i) for every i in [0, n), on the device of the first argument; mxnet_kernel.cuh has gpu.
template <typename F>
void ForEach(cpu, Stream<cpu>*, int64_t n, const F& f) {
  Launch(OnCpu{}, n, f);
}

namespace mshadow {

using mxnet::index_t;
using mxnet::real_t;
using TShape = mxtrain::TShape;

// The size of each of `dimension` axes.
template <int dimension>
struct Shape {
  static constexpr int kDimension = dimension;
  index_t shape_[dimension];

  MSHADOW_XINLINE index_t& operator[](int axis) { return shape_[axis]; }
  MSHADOW_XINLINE index_t operator[](int axis) const { return shape_[axis]; }
  MSHADOW_XINLINE index_t Size() const {
    index_t size = 1;
    for (int axis = 0; axis < dimension; ++axis) size *= shape_[axis];
    return size;
  }
  bool operator==(const Shape& other) const {
    return std::equal(shape_, shape_ + dimension, other.shape_);
  }
  operator TShape() const { return TShape(std::span<const int64_t>(shape_, dimension)); }
};
inline Shape<1> Shape1(index_t a) {
  return {{a}};
}
inline Shape<2> Shape2(index_t a, index_t b) {
  return {{a, b}};
}
inline Shape<3> Shape3(index_t a, index_t b, index_t c) {
  return {{a, b, c}};
}
inline Shape<4> Shape4(index_t a, index_t b, index_t c, index_t d) {
  return {{a, b, c, d}};
}

namespace expr {

// MXNet's functions of elements convert their arguments as C does.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wfloat-conversion"

// The value as an element of an array. Narrow floats are made from float.
template <typename T, typename V>
MSHADOW_XINLINE T Stored(V value) {
  if constexpr (sizeof(T) == 2 && !std::is_integral_v<T>)
    return static_cast<T>(static_cast<float>(value));
  else
    return static_cast<T>(value);
}

// The size of what has one value for all elements.
inline constexpr index_t kAnySize = -1;

// Base of all expressions, which have `Eval(i)`, element i, and `Size()`.
template <typename Sub>
struct Exp {
  MSHADOW_XINLINE const Sub& self() const { return *static_cast<const Sub*>(this); }
};

template <typename DType>
struct ScalarExp : Exp<ScalarExp<DType>> {
  DType scalar_;
  template <typename V>
  explicit ScalarExp(V scalar) : scalar_(Stored<DType>(scalar)) {}
  MSHADOW_XINLINE DType Eval(index_t) const { return scalar_; }
  index_t Size() const { return kAnySize; }
};

// Functions of elements compute narrow floats as float.
template <typename V>
MSHADOW_XINLINE auto Operand(V value) {
  if constexpr (sizeof(V) == 2 && !std::is_integral_v<V>)
    return static_cast<float>(value);
  else
    return value;
}

template <typename OP, typename A>
struct UnaryMapExp : Exp<UnaryMapExp<OP, A>> {
  A a_;
  explicit UnaryMapExp(const A& a) : a_(a) {}
  MSHADOW_XINLINE auto Eval(index_t i) const { return OP::Map(Operand(a_.Eval(i))); }
  index_t Size() const { return a_.Size(); }
};

[[noreturn]] inline void ThrowSizes(index_t a, index_t b) {
  Throw(ErrorKind::kConfig,
        "an expression of arrays with {} and {} elements; the arrays of an expression have one "
        "shape",
        a, b);
}

inline index_t CommonSize(index_t a, index_t b) {
  if (a != b && a != kAnySize && b != kAnySize) ThrowSizes(a, b);
  return a == kAnySize ? b : a;
}

template <typename OP, typename A, typename B>
struct BinaryMapExp : Exp<BinaryMapExp<OP, A, B>> {
  A a_;
  B b_;
  BinaryMapExp(const A& a, const B& b) : a_(a), b_(b) {}
  MSHADOW_XINLINE auto Eval(index_t i) const {
    return OP::Map(Operand(a_.Eval(i)), Operand(b_.Eval(i)));
  }
  index_t Size() const { return CommonSize(a_.Size(), b_.Size()); }
};

// OP::Map of each element, or of each pair.
template <typename OP, typename A>
UnaryMapExp<OP, A> F(const Exp<A>& a) {
  return UnaryMapExp<OP, A>(a.self());
}
template <typename OP, typename A, typename B>
BinaryMapExp<OP, A, B> F(const Exp<A>& a, const Exp<B>& b) {
  return {a.self(), b.self()};
}

// A number beside an array has the array's type, beside another expression its own.
template <typename E, typename V, typename = void>
struct NumberBeside {
  using type = V;
};
template <typename E, typename V>
struct NumberBeside<E, V, std::void_t<typename E::Element>> {
  using type = typename E::Element;
};
template <typename E, typename V>
using NumberExp = ScalarExp<typename NumberBeside<E, V>::type>;
template <typename V>
inline constexpr bool kIsNumber =
    std::is_arithmetic_v<V> || std::is_same_v<V, float16> || std::is_same_v<V, bfloat16>;

#define MXTRAIN_MSHADOW_OPERATOR(name, symbol)                                       \
  namespace op {                                                                     \
  struct name {                                                                      \
    template <typename A, typename B>                                                \
    MSHADOW_XINLINE static auto Map(A a, B b) {                                      \
      return a symbol b;                                                             \
    }                                                                                \
  };                                                                                 \
  }                                                                                  \
  template <typename A, typename B>                                                  \
  BinaryMapExp<op::name, A, B> operator symbol(const Exp<A>& a, const Exp<B>& b) {   \
    return {a.self(), b.self()};                                                     \
  }                                                                                  \
  template <typename A, typename V, typename = std::enable_if_t<kIsNumber<V>>>       \
  BinaryMapExp<op::name, A, NumberExp<A, V>> operator symbol(const Exp<A>& a, V b) { \
    return {a.self(), NumberExp<A, V>(b)};                                           \
  }                                                                                  \
  template <typename B, typename V, typename = std::enable_if_t<kIsNumber<V>>>       \
  BinaryMapExp<op::name, NumberExp<B, V>, B> operator symbol(V a, const Exp<B>& b) { \
    return {NumberExp<B, V>(a), b.self()};                                           \
  }
MXTRAIN_MSHADOW_OPERATOR(plus, +)
MXTRAIN_MSHADOW_OPERATOR(minus, -)
MXTRAIN_MSHADOW_OPERATOR(mul, *)
MXTRAIN_MSHADOW_OPERATOR(div, /)
#undef MXTRAIN_MSHADOW_OPERATOR

// What an assignment makes of an element and a value.
struct Replace {
  template <typename T, typename V>
  MSHADOW_XINLINE static T Of(T, V value) {
    return Stored<T>(value);
  }
};
struct Add {
  template <typename T, typename V>
  MSHADOW_XINLINE static T Of(T before, V value) {
    return Stored<T>(Plus(static_cast<V>(before), value));
  }
};
template <typename How, typename T, typename E>
struct Assignment {
  T* out;
  E exp;
  MSHADOW_XINLINE void operator()(index_t i) const { out[i] = How::Of(out[i], exp.Eval(i)); }
};

#pragma GCC diagnostic pop

}  // namespace expr

// A plain array in the memory of a device: a handle, of which copies share the elements.
template <typename Device, int dimension, typename DType = real_t>
struct Tensor : expr::Exp<Tensor<Device, dimension, DType>> {
  using Element = DType;
  DType* dptr_ = nullptr;
  Shape<dimension> shape_{};
  Stream<Device>* stream_ = nullptr;

  Tensor() = default;
  Tensor(DType* dptr, const Shape<dimension>& shape, Stream<Device>* stream = nullptr)
      : dptr_(dptr), shape_(shape), stream_(stream) {}

  MSHADOW_XINLINE DType Eval(index_t i) const { return dptr_[i]; }
  index_t Size() const { return shape_.Size(); }
  index_t size(int axis) const { return shape_[axis]; }
  Tensor<Device, 2, DType> FlatTo2D() const {
    const index_t columns = shape_[dimension - 1], size = Size();
    return {dptr_, Shape2(columns == 0 ? 0 : size / columns, columns), stream_};
  }
  // The elements of one index of the first axis.
  MSHADOW_XINLINE decltype(auto) operator[](index_t i) const {
    if constexpr (dimension == 1) {
      return (dptr_[i]);
    } else {
      Tensor<Device, dimension - 1, DType> part;
      for (int axis = 1; axis < dimension; ++axis) part.shape_[axis - 1] = shape_[axis];
      part.dptr_ = dptr_ + i * part.shape_.Size();
      part.stream_ = stream_;
      return part;
    }
  }

  // Writes the elements, also of a tensor of this type, whose assignment makes this one a handle of
  // the same elements, as in mshadow.
  template <typename E>
  const Tensor& Store(const expr::Exp<E>& e) const {
    return Save<expr::Replace>(e.self());
  }
  template <typename V, typename = std::enable_if_t<expr::kIsNumber<V>>>
  const Tensor& Store(V number) const {
    return Save<expr::Replace>(expr::ScalarExp<DType>(number));
  }
  template <typename E>
  const Tensor& operator=(const expr::Exp<E>& e) const {
    return Store(e);
  }
  template <typename E>
  const Tensor& operator+=(const expr::Exp<E>& e) const {
    return Save<expr::Add>(e.self());
  }
  template <typename E>
  const Tensor& operator-=(const expr::Exp<E>& e) const {
    return Save<expr::Replace>(*this - e);
  }
  template <typename E>
  const Tensor& operator*=(const expr::Exp<E>& e) const {
    return Save<expr::Replace>(*this * e);
  }
  template <typename E>
  const Tensor& operator/=(const expr::Exp<E>& e) const {
    return Save<expr::Replace>(*this / e);
  }
  template <typename V, typename = std::enable_if_t<expr::kIsNumber<V>>>
  const Tensor& operator=(V number) const {
    return Store(number);
  }
  template <typename V, typename = std::enable_if_t<expr::kIsNumber<V>>>
  const Tensor& operator+=(V number) const {
    return Save<expr::Add>(expr::ScalarExp<DType>(number));
  }
  template <typename V, typename = std::enable_if_t<expr::kIsNumber<V>>>
  const Tensor& operator*=(V number) const {
    return Save<expr::Replace>(*this * number);
  }

 private:
  template <typename How, typename E>
  const Tensor& Save(const E& e) const {
    const index_t size = expr::CommonSize(Size(), e.Size());
    ForEach(Device{}, stream_, size, expr::Assignment<How, DType, E>{dptr_, e});
    return *this;
  }
};

}  // namespace mshadow

// An array as MXNet names its parts. As mxtrain::TBlob it is a view that owns nothing.
struct TBlob : mxtrain::TBlob {
  void* dptr_ = nullptr;
  TShape shape_;
  DType type_flag_ = DType::kUnknown;

  TBlob() = default;
  TBlob(const mxtrain::TBlob& blob)
      : mxtrain::TBlob(blob), dptr_(blob.data), shape_(blob.shape), type_flag_(blob.type) {}

  // Throws kConfig for another number of axes or another element type.
  template <typename Device, int dimension, typename Element>
  mshadow::Tensor<Device, dimension, Element> get(Stream<Device>* stream = nullptr) const {
    if (shape.ndim() != dimension) {
      Throw(ErrorKind::kConfig,
            "get of {} axes from an array of shape {}; use as many axes as it has, or FlatTo2D",
            dimension, shape.ToString());
    }
    mshadow::Shape<dimension> sizes;
    for (int axis = 0; axis < dimension; ++axis) sizes[axis] = shape[axis];
    return {Elements<Element>(), sizes, stream};
  }
  // [first axis, all others].
  template <typename Device, typename Element>
  mshadow::Tensor<Device, 2, Element> FlatTo2D(Stream<Device>* stream = nullptr) const {
    const int64_t rows = shape.ndim() > 0 ? shape[0] : 1;
    return {Elements<Element>(), mshadow::Shape2(rows, rows == 0 ? 0 : Size() / rows), stream};
  }

 private:
  template <typename Element>
  Element* Elements() const {
    MXTRAIN_ASSERT(layout.plain());
    if (type != DTypeOf<Element>::value) {
      Throw(ErrorKind::kConfig, "an array of {} was asked for as {}", NameOf(type),
            NameOf(DTypeOf<Element>::value));
    }
    return dptr<Element>();
  }
};

}  // namespace mxtrain::mxnet
