#pragma once
// What operators share whose output is their input: views of an array under another shape, and losses that pass their input on.
#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/registry.h"

namespace mxtrain {

// What Flatten and Reshape say of themselves: their output is the same bytes under another shape.
template <typename P>
class ReshapingProperty : public PropertyWithParam<P> {
 public:
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad, const std::vector<int>&,
                                             const std::vector<int>&) const override {
    return out_grad;
  }
  std::vector<InplacePair> ForwardInplaceOption() const override { return {{0, 0}}; }
  std::vector<InplacePair> BackwardInplaceOption() const override { return {{0, 0}}; }
  std::vector<InplacePair> ForwardIdentityOption() const override { return {{0, 0}}; }
  std::vector<InplacePair> BackwardIdentityOption() const override { return {{0, 0}}; }
};

// to = from or to += from over the stored elements, which both arrays have equally many of and in the same order. Nothing where both are
// the same memory.
MXTRAIN_API void CopyBlob(const RunContext& ctx, OpReqType req, const TBlob& from, const TBlob& to);

// Output 0 is input 0; the gradient is the head gradient. Of every type and layout.
class MXTRAIN_API IdentityCpu final : public Operator {
 public:
  void Forward(const OpContext& ctx, std::span<const TBlob> in_data, std::span<const OpReqType> req, std::span<const TBlob> out_data,
               std::span<const TBlob> aux_states) override;
  void Backward(const OpContext& ctx, std::span<const TBlob> out_grad, std::span<const TBlob> in_data, std::span<const TBlob> out_data,
                std::span<const OpReqType> req, std::span<const TBlob> in_grad, std::span<const TBlob> aux_states) override;
};

// The CPU row `ref` of such an operator: IdentityCpu over plain arrays.
MXTRAIN_API PlanRow IdentityRow(std::string op);

}  // namespace mxtrain
