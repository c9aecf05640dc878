// SPDX-License-Identifier: Apache-2.0
#pragma once
// Permutes axes: transpose (axes; none: all reversed) and SwapAxis (swapaxes: swaps dim1 and dim2).
#include "mxtrain/operator/view_operator.h"

namespace mxtrain {

struct TransposeParam : Parameter<TransposeParam> {
  TShape axes;
  static void Declare(Fields<TransposeParam>& f) {
    f.Add("axes", &TransposeParam::axes)
        .Default(TShape(std::span<const int64_t>()))
        .Help("axis i of the output is axis axes[i] of the data; () reverses all");
  }
};

struct SwapAxisParam : Parameter<SwapAxisParam> {
  int dim1, dim2;
  static void Declare(Fields<SwapAxisParam>& f) {
    f.Add("dim1", &SwapAxisParam::dim1).Default(0).Help("an axis; negative counts from the end");
    f.Add("dim2", &SwapAxisParam::dim2).Default(0).Help("the axis to swap it with");
  }
};

template <typename P>
class PermutingProperty : public ViewProperty<P> {
 public:
  MixedPrecision mixed_precision() const override { return {MixedPrecision::kFollows}; }
  // Axis i of the output is axis order[i] of the data, of known rank. Throws kConfig for axes that
  // are out of range, missing or repeated.
  virtual std::vector<int> OrderOf(const TShape& data) const = 0;

  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const final;
  MoveList MovesOf(std::span<const TensorSpec> in, std::span<const TensorSpec> out) const final;
};

class TransposeProperty final : public PermutingProperty<TransposeParam> {
 public:
  std::string TypeString() const override { return "transpose"; }
  std::string Description() const override { return "permutes the axes"; }
  std::vector<int> OrderOf(const TShape& data) const override;
  bool IsIdentity() const override;
};

class SwapAxisProperty final : public PermutingProperty<SwapAxisParam> {
 public:
  std::string TypeString() const override { return "SwapAxis"; }
  std::string Description() const override { return "swaps two axes"; }
  std::vector<int> OrderOf(const TShape& data) const override;
  bool IsIdentity() const override { return param_.dim1 == param_.dim2; }
};

}  // namespace mxtrain

MXTRAIN_KERNELS(transpose, Device, registry) {
  registry.AddKernel(mxtrain::ViewKernel<mxtrain::TransposeParam, Device>("transpose"));
  registry.AddKernel(mxtrain::ViewKernel<mxtrain::SwapAxisParam, Device>("SwapAxis"));
}
