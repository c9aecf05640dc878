// SPDX-License-Identifier: Apache-2.0
#pragma once
// shape_array: the lengths of an array's axes, int64 [axes]; size_array: the number of its
// elements, int64 [1]. They have no gradient.
#include <memory>

#include "mxtrain/operator/plans.h"

namespace mxtrain::shape_array {

class ShapeArrayProperty final : public PropertyWithParam<NoParam> {
 public:
  explicit ShapeArrayProperty(bool size) : size_(size) {}
  std::string TypeString() const override { return size_ ? "size_array" : "shape_array"; }
  std::string Description() const override {
    return size_ ? "the number of elements of an array" : "the lengths of an array's axes";
  }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>*) const override {
    if (!(*in)[0].known()) return false;
    UnifyShape({size_ ? 1 : int64_t{(*in)[0].ndim()}}, &(*out)[0], TypeString(), "output");
    return true;
  }
  bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                 std::vector<DType>*) const override {
    UnifyType(DType::kInt64, &(*out)[0], TypeString(), "output");
    return (*in)[0] != DType::kUnknown;
  }
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>&,
                                             const std::vector<int>&) const override {
    return out_grad;  // not a loss
  }
  bool HasGradient(int) const override { return false; }

  // The numbers of the output.
  TShape NumbersOf(const TShape& data) const { return size_ ? TShape{data.Size()} : data; }

 private:
  bool size_;
};

struct NumberAt {
  TShape numbers;
  MXTRAIN_HD int64_t operator()(int64_t i) const { return numbers[static_cast<int>(i)]; }
};

template <typename Device>
class ShapeArray final : public Operator {
 public:
  explicit ShapeArray(const TShape& numbers) : numbers_(numbers) {}
  void Forward(const ForwardArgs& args) override {
    MapOn<int64_t>(Device{args.ctx.run_ctx}, args.out_data[0], args.req[0], NumberAt{numbers_});
  }

 private:
  TShape numbers_;
};

template <typename Device>
Expected<Plan, Refusal> MakePlan(const OperatorProperty& property, const PlanRequest& request,
                                 Backend&) {
  if (request.needs_backward) return Refusal{"has no gradient"};
  Plan plan = PlainPlan(property, request);
  const auto& base = static_cast<const ShapeArrayProperty&>(property);
  plan.make = [numbers = base.NumbersOf(request.in[0].shape)] {
    return std::make_unique<ShapeArray<Device>>(numbers);
  };
  return plan;
}

}  // namespace mxtrain::shape_array

MXTRAIN_KERNELS(shape_array, Device, registry) {
  using namespace mxtrain;
  for (const char* op : {"shape_array", "size_array"})
    registry.AddKernel(LastKernel<Device>(op, shape_array::MakePlan<Device>, Takes::kEveryType));
}
