// SPDX-License-Identifier: Apache-2.0
#pragma once
// SliceChannel: splits an axis into equal parts, one output each. The inverse of Concat.
#include "mxtrain/operator/most_arguments.h"
#include "mxtrain/operator/view_operator.h"

namespace mxtrain {

struct SliceChannelParam : Parameter<SliceChannelParam> {
  int num_outputs, axis;
  bool squeeze_axis;
  static void Declare(Fields<SliceChannelParam>& f) {
    f.Add("num_outputs", &SliceChannelParam::num_outputs)
        .Required()
        .Range(1, kMostArguments)
        .Help("number of parts");
    f.Add("axis", &SliceChannelParam::axis)
        .Default(1)
        .Help("axis to split; negative counts from the end");
    f.Add("squeeze_axis", &SliceChannelParam::squeeze_axis)
        .Default(false)
        .Help("remove the axis, whose length must be num_outputs");
  }
};

class SliceChannelProperty final : public ViewProperty<SliceChannelParam> {
 public:
  MixedPrecision mixed_precision() const override { return {MixedPrecision::kFollows}; }
  std::string TypeString() const override { return "SliceChannel"; }
  std::string Description() const override {
    return "splits its input into equal parts along an axis";
  }
  std::vector<std::string> ListOutputs() const override;
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  MoveList MovesOf(std::span<const TensorSpec> in, std::span<const TensorSpec> out) const override;
  // A blocked layout, if every output is whole blocks of the input.
  Layout LayoutFor(const PlanRequest& request) const override;
  bool IsIdentity() const override { return param_.num_outputs == 1; }

 private:
  int Axis(int ndim) const;  // throws kConfig when out of range
};

}  // namespace mxtrain

MXTRAIN_KERNELS(slice_channel, Device, registry) {
  registry.AddKernel(mxtrain::ViewKernel<mxtrain::SliceChannelParam, Device>("SliceChannel"));
}
