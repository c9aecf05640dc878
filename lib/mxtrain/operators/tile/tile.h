// SPDX-License-Identifier: Apache-2.0
#pragma once
// Repetition: tile (the whole array, side by side along axes) and repeat (every index of an axis,
// or every element of the flattened array, several times in a row). The gradient sums over the
// copies.
#include <optional>

#include "mxtrain/operator/view_operator.h"

namespace mxtrain {

struct TileParam : Parameter<TileParam> {
  TShape reps;
  static void Declare(Fields<TileParam>& f) {
    f.Add("reps", &TileParam::reps)
        .Required()
        .Help("copies along the last axes; more entries than axes prepend axes of length 1");
  }
};

class TileProperty final : public ViewProperty<TileParam> {
 public:
  std::string TypeString() const override { return "tile"; }
  std::string Description() const override { return "repeats an array along axes"; }
  TShape OutShape(const std::vector<TShape>& in) const override;
  MoveList MovesOf(std::span<const TensorSpec> in, std::span<const TensorSpec> out) const override;
  bool IsIdentity() const override;

 protected:
  void Check() override;
};

struct RepeatParam : Parameter<RepeatParam> {
  int repeats;
  std::optional<int> axis;
  static void Declare(Fields<RepeatParam>& f) {
    f.Add("repeats", &RepeatParam::repeats).Required().Range(1).Help("copies of each element");
    f.Add("axis", &RepeatParam::axis)
        .Default(std::nullopt)
        .Help("axis to extend, negative from the end; None: the array is flattened");
  }
};

class RepeatProperty final : public ViewProperty<RepeatParam> {
 public:
  std::string TypeString() const override { return "repeat"; }
  std::string Description() const override { return "repeats the elements of an array"; }
  TShape OutShape(const std::vector<TShape>& in) const override;
  MoveList MovesOf(std::span<const TensorSpec> in, std::span<const TensorSpec> out) const override;
  bool IsIdentity() const override { return param_.repeats == 1; }
};

}  // namespace mxtrain

MXTRAIN_KERNELS(tile, Device, registry) {
  registry.AddKernel(mxtrain::ViewKernel<mxtrain::TileParam, Device>("tile"));
  registry.AddKernel(mxtrain::ViewKernel<mxtrain::RepeatParam, Device>("repeat"));
}
