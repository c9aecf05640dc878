// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "mxtrain/operator/identity.h"
#include "mxtrain/operator/operator.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/box_iou/box_iou.h"

namespace mxtrain::box_iou {

// Element [l, r] of the output.
template <typename T>
struct OverlapOf {
  using C = ComputeOf<T>;
  const T *lhs, *rhs;
  int64_t right_boxes;
  int format;

  MXTRAIN_HD C operator()(int64_t i) const {
    return IntersectionOverUnion(ReadBox(lhs + i / right_boxes * 4, format),
                                 ReadBox(rhs + i % right_boxes * 4, format));
  }
};

template <typename Device>
class BoxIou final : public Operator {
 public:
  explicit BoxIou(const BoxIouParam& param) : format_(param.format) {}

  void Forward(const ForwardArgs& args) override {
    const TBlob &lhs = args.in_data[BoxIouProperty::kLhs],
                &rhs = args.in_data[BoxIouProperty::kRhs];
    SwitchFloating(lhs.type, "box_iou", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const OverlapOf<T> overlap{lhs.dptr<T>(), rhs.dptr<T>(), rhs.Size() / 4, format_};
      MapOn<T>(Device{args.ctx.run_ctx}, args.out_data[0], args.req[0], overlap);
    });
  }
  void Backward(const BackwardArgs& args) override {
    for (size_t i = 0; i < args.in_grad.size(); ++i)
      ZeroBlob(Device{args.ctx.run_ctx}, args.req[i], args.in_grad[i]);
  }

 private:
  int format_;
};

}  // namespace mxtrain::box_iou

MXTRAIN_KERNELS(box_iou, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(
      ReferenceKernel<BoxIouProperty, box_iou::BoxIou<Device>, Device>("_contrib_box_iou"));
}
