// SPDX-License-Identifier: Apache-2.0
#pragma once
// C [m, n] = A [m, k] B [k, n] over plain arrays with strided rows and columns; also for batches of
// consecutive products.
#include "mxtrain/device/matrix_view.h"
#include "mxtrain/operator/kernel.h"

namespace mxtrain::dot {

// c = a b, or += a b, honouring the request; sums in double, whatever `math`. The shapes of the
// views match. matrix_product.cuh has the same for OnGpu.
MXTRAIN_API void MultiplyMatrices(const OnCpu& device, Math math, const TBlob& a,
                                  const MatrixView& va, const TBlob& b, const MatrixView& vb,
                                  const TBlob& c, const MatrixView& vc, OpReqType req);

// Estimated nanoseconds, for plans.
MXTRAIN_API double ProductCost(const MatrixView& a, const MatrixView& b);

}  // namespace mxtrain::dot
