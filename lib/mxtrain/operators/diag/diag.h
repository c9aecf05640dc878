// SPDX-License-Identifier: Apache-2.0
#pragma once
// diag: of a vector, the square matrix with it on the k-th diagonal and zeros elsewhere; of other
// arrays, the k-th diagonals along axis1 and axis2, which become the last axis of the output.
// k > 0 is above the main diagonal.
#include <climits>

#include "mxtrain/operator/view_operator.h"

namespace mxtrain {

struct DiagParam : Parameter<DiagParam> {
  int64_t k;
  int axis1, axis2;
  static void Declare(Fields<DiagParam>& f) {
    f.Add("k", &DiagParam::k)
        .Range(INT_MIN, INT_MAX)
        .Default(0)
        .Help("which diagonal: above 0 to the right");
    f.Add("axis1", &DiagParam::axis1).Default(0).Help("axis of the matrices' rows");
    f.Add("axis2", &DiagParam::axis2).Default(1).Help("axis of the matrices' columns");
  }
};

class DiagProperty final : public ViewProperty<DiagParam> {
 public:
  std::string TypeString() const override { return "diag"; }
  std::string Description() const override {
    return "the diagonal of matrices, or a matrix with a diagonal";
  }
  TShape OutShape(const std::vector<TShape>& in) const override;
  MoveList MovesOf(std::span<const TensorSpec> in, std::span<const TensorSpec> out) const override;
};

}  // namespace mxtrain

MXTRAIN_KERNELS(diag, Device, registry) {
  registry.AddKernel(mxtrain::ViewKernel<mxtrain::DiagParam, Device>("diag"));
}
