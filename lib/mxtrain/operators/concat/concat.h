// SPDX-License-Identifier: Apache-2.0
#pragma once
// Concat: joins arrays along an axis; all other dimensions are equal.
#include "mxtrain/operator/most_arguments.h"
#include "mxtrain/operator/view_operator.h"

namespace mxtrain {

struct ConcatParam : Parameter<ConcatParam> {
  int num_args, dim;
  static void Declare(Fields<ConcatParam>& f) {
    f.Add("num_args", &ConcatParam::num_args)
        .Required()
        .Range(1, kMostArguments)
        .Help("number of inputs");
    f.Add("dim", &ConcatParam::dim)
        .Default(1)
        .Help("axis along which the inputs are joined; negative counts from the end");
  }
};

class ConcatProperty final : public ViewProperty<ConcatParam> {
 public:
  std::string TypeString() const override { return "Concat"; }
  std::string Description() const override { return "joins its inputs along an axis"; }
  MixedPrecision mixed_precision() const override { return {MixedPrecision::kFollows}; }
  std::string NumArgsKey() const override { return "num_args"; }
  std::vector<std::string> ListArguments() const override;
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  MoveList MovesOf(std::span<const TensorSpec> in, std::span<const TensorSpec> out) const override;
  // A blocked layout, if every input is whole blocks of the output.
  Layout LayoutFor(const PlanRequest& request) const override;
  bool IsIdentity() const override { return param_.num_args == 1; }

 private:
  int Axis(int ndim) const;  // throws kConfig when out of range
};

}  // namespace mxtrain

MXTRAIN_KERNELS(concat, Device, registry) {
  registry.AddKernel(mxtrain::ViewKernel<mxtrain::ConcatParam, Device>("Concat"));
}
