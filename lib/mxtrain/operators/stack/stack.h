// SPDX-License-Identifier: Apache-2.0
#pragma once
// stack: joins arrays of one shape along a new axis.
#include "mxtrain/operator/most_arguments.h"
#include "mxtrain/operator/view_operator.h"

namespace mxtrain {

struct StackParam : Parameter<StackParam> {
  int num_args, axis;
  static void Declare(Fields<StackParam>& f) {
    f.Add("num_args", &StackParam::num_args)
        .Required()
        .Range(1, kMostArguments)
        .Help("number of inputs");
    f.Add("axis", &StackParam::axis)
        .Default(0)
        .Help("position of the new axis in the output; negative counts from the end");
  }
};

class StackProperty final : public ViewProperty<StackParam> {
 public:
  std::string TypeString() const override { return "stack"; }
  std::string Description() const override { return "joins its inputs along a new axis"; }
  std::string NumArgsKey() const override { return "num_args"; }
  std::vector<std::string> ListArguments() const override;
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  MoveList MovesOf(std::span<const TensorSpec> in, std::span<const TensorSpec> out) const override;
  bool IsIdentity() const override { return param_.num_args == 1; }

 private:
  int Axis(int ndim) const;  // of the output; throws kConfig when out of range
};

}  // namespace mxtrain

MXTRAIN_KERNELS(stack, Device, registry) {
  registry.AddKernel(mxtrain::ViewKernel<mxtrain::StackParam, Device>("stack"));
}
