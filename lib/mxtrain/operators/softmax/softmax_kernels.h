// SPDX-License-Identifier: Apache-2.0
#pragma once
// The vectorized passes of the softmax family over an array [outer, classes, inner]: along rows
// (inner 1), or along columns, whose neighbours fill a vector. The bits of a softmax do not depend
// on what is computed beside it.
//
// T is the storage type, float or bfloat16; all is computed in float. Floats keep the exponentials
// in the output between the passes; bfloat16, which would round them, computes them twice, the
// second time as e^(x - log of the sum).
#include <cstdint>

namespace mxtrain::softmax {

struct Form {
  bool log = false;
  float scale = 1;  // the softmax is that of scale * x
};

template <typename T>
struct Kernels {
  // Rows of `classes` elements, of which the first `count` count. y may be x.
  void (*forward_rows)(const Form& form, const T* x, T* y, int64_t rows, int64_t classes,
                       int64_t count);
  // Columns [begin, end) of a matrix [classes, inner]. y may be x.
  void (*forward_columns)(const Form& form, const T* x, T* y, int64_t classes, int64_t inner,
                          int64_t begin, int64_t end);
  // dx, or dx += it, from the head gradient and the output. dx may be `head`.
  void (*backward_rows)(const Form& form, const T* head, const T* y, T* dx, bool add, int64_t rows,
                        int64_t classes, int64_t count);
  void (*backward_columns)(const Form& form, const T* head, const T* y, T* dx, bool add,
                           int64_t classes, int64_t inner, int64_t begin, int64_t end);
};

// For the best instruction set of the machine.
template <typename T>
const Kernels<T>& KernelsOf();

}  // namespace mxtrain::softmax
