// SPDX-License-Identifier: Apache-2.0
#pragma once
// reshape_like(lhs, rhs): the elements of lhs in the shape of rhs, or with the axes lhs_begin ..
// lhs_end - 1 replaced by the axes rhs_begin .. rhs_end - 1 of rhs. rhs only provides its shape; it
// has no gradient.
#include <optional>

#include "mxtrain/operator/identity.h"

namespace mxtrain {

struct ReshapeLikeParam : Parameter<ReshapeLikeParam> {
  std::optional<int> lhs_begin, lhs_end, rhs_begin, rhs_end;
  static void Declare(Fields<ReshapeLikeParam>& f) {
    f.Add("lhs_begin", &ReshapeLikeParam::lhs_begin)
        .Default(std::nullopt)
        .Help("first axis of lhs to replace, negative from the end; None: 0");
    f.Add("lhs_end", &ReshapeLikeParam::lhs_end)
        .Default(std::nullopt)
        .Help("axis of lhs after those; None: the end");
    f.Add("rhs_begin", &ReshapeLikeParam::rhs_begin)
        .Default(std::nullopt)
        .Help("first axis of rhs to take, negative from the end; None: 0");
    f.Add("rhs_end", &ReshapeLikeParam::rhs_end)
        .Default(std::nullopt)
        .Help("axis of rhs after those; None: the end");
  }
};

class ReshapeLikeProperty final : public ReshapingProperty<ReshapeLikeParam> {
 public:
  std::string TypeString() const override { return "reshape_like"; }
  std::string Description() const override { return "the elements in the shape of another array"; }
  std::vector<std::string> ListArguments() const override { return {"lhs", "rhs"}; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                 std::vector<DType>* aux) const override;
  bool HasGradient(int argument) const override { return argument == 0; }
};

}  // namespace mxtrain

MXTRAIN_KERNELS(reshape_like, Device, registry) {
  registry.AddKernel(mxtrain::IdentityKernel<Device>("reshape_like"));
}
