// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the kernels of the family save of each row, and the size of the blocks in which they sum.
#include "mxtrain/operators/layer_norm/layer_norm.h"

namespace mxtrain::layer_norm {

// The normalized row is (x - center) * inverse + shift. The center is the mean rounded to A, and
// the shift what that took away: a mean far from zero costs no accuracy.
template <typename A>
struct RowMoments {
  A center, inverse, shift;
  MXTRAIN_HD A Normalized(A x) const { return (x - center) * inverse + shift; }
  // Of a row with this mean, or 0 if it is not centred, that is divided by `deviation`.
  MXTRAIN_HD static RowMoments Of(double mean, double deviation) {
    const A center = static_cast<A>(mean);
    const double inverse = 1 / deviation;
    return {center, static_cast<A>(inverse),
            static_cast<A>((static_cast<double>(center) - mean) * inverse)};
  }
};

// Elements that the vectorized kernels sum in floats; the sums of blocks are added in double.
inline constexpr int64_t kBlock = 2048;

// Bytes of a row's moments for data of this type.
inline int64_t MomentsBytes(DType data) {
  return static_cast<int64_t>(data == DType::kFloat64 ? sizeof(RowMoments<double>)
                                                      : sizeof(RowMoments<float>));
}

}  // namespace mxtrain::layer_norm
