// SPDX-License-Identifier: Apache-2.0
#pragma once
// SoftmaxActivation, written once for both devices: Device is OnCpu or OnGpu.
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

  void Forward(const OpContext& ctx, std::span<const TBlob> in, std::span<const OpReqType> req,
               std::span<const TBlob> out, std::span<const TBlob>) override {
    if (req[0] == OpReqType::kNullOp) return;
    const SoftmaxView view = ViewOf(in[0].shape);
    SwitchFloating(in[0].type, "SoftmaxActivation", [&](auto tag) {
      using T = typename decltype(tag)::type;
      ForEachSoftmax(Device{ctx.run_ctx}, view,
                     SoftmaxRow<T>{{view}, in[0].dptr<T>(), out[0].dptr<T>(), req[0]});
    });
  }

  void Backward(const OpContext& ctx, std::span<const TBlob> out_grad, std::span<const TBlob>,
                std::span<const TBlob> out, std::span<const OpReqType> req,
                std::span<const TBlob> in_grad, std::span<const TBlob>) override {
    if (req[0] == OpReqType::kNullOp) return;
    const SoftmaxView view = ViewOf(in_grad[0].shape);
    SwitchFloating(in_grad[0].type, "SoftmaxActivation", [&](auto tag) {
      using T = typename decltype(tag)::type;
      ForEachSoftmax(
          Device{ctx.run_ctx}, view,
          GradientKernel<T>{
              {view}, out_grad[0].dptr<T>(), out[0].dptr<T>(), in_grad[0].dptr<T>(), req[0]});
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
