// SPDX-License-Identifier: Apache-2.0
#pragma once
// SoftmaxActivation, written once for all devices.
#include <memory>

#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/softmax_activation/softmax_activation.h"
#include "mxtrain/operators/softmax_output/softmax_row.h"

namespace mxtrain::softmax_activation {

// dx = y (g - sum of g y), or += it. dx may be g.
template <typename T>
struct GradientKernel {
  SoftmaxPlaces places;
  const T *head, *y;
  T* dx;
  OpReqType req;
  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t row) const {
    using A = AccumulatorOf<T>;
    A dot = 0;
    for (int64_t k = team.rank(); k < places.view.classes; k += team.size()) {
      const int64_t i = places.At(row, k);
      dot += A(head[i]) * A(y[i]);
    }
    dot = team.Fold(dot, AddBoth{});
    for (int64_t k = team.rank(); k < places.view.classes; k += team.size()) {
      const int64_t i = places.At(row, k);
      Assign(req, dx, i, A(y[i]) * (A(head[i]) - dot));
    }
  }
};

template <typename Device>
class SoftmaxActivation final : public Operator {
 public:
  explicit SoftmaxActivation(const SoftmaxActivationParam& param)
      : channel_(param.mode == kSoftmaxChannel) {}

  void Forward(const ForwardArgs& args) override {
    const OpReqType req = args.req[0];
    if (req == OpReqType::kNullOp) return;
    const TBlob &data = args.in_data[0], &output = args.out_data[0];
    const SoftmaxView view = ViewOf(data.shape);
    SwitchFloating(data.type, "SoftmaxActivation", [&](auto tag) {
      using T = typename decltype(tag)::type;
      ForEachSoftmax(Device{args.ctx.run_ctx}, view,
                     SoftmaxRow<T>{{view}, data.dptr<T>(), output.dptr<T>(), req});
    });
  }

  void Backward(const BackwardArgs& args) override {
    const OpReqType req = args.req[0];
    if (req == OpReqType::kNullOp) return;
    const TBlob& data_grad = args.in_grad[0];
    const SoftmaxView view = ViewOf(data_grad.shape);
    SwitchFloating(data_grad.type, "SoftmaxActivation", [&](auto tag) {
      using T = typename decltype(tag)::type;
      ForEachSoftmax(Device{args.ctx.run_ctx}, view,
                     GradientKernel<T>{{view},
                                       args.out_grad[0].dptr<T>(),
                                       args.out_data[0].dptr<T>(),
                                       data_grad.dptr<T>(),
                                       req});
    });
  }

 private:
  SoftmaxView ViewOf(const TShape& shape) const {
    if (channel_) return {shape[0], shape[1], shape.Product(2, shape.ndim())};
    return {shape[0], shape.Product(1, shape.ndim()), 1};
  }

  bool channel_;
};

template <typename Device>
KernelEntry Kernel() {
  return ReferenceKernel<SoftmaxActivationProperty, SoftmaxActivation<Device>, Device>(
      "SoftmaxActivation");
}

}  // namespace mxtrain::softmax_activation

MXTRAIN_KERNELS(softmax_activation, Device, registry) {
  registry.AddKernel(mxtrain::softmax_activation::Kernel<Device>());
}
