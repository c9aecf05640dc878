// SPDX-License-Identifier: Apache-2.0
#pragma once
// SVMOutput, written once for all devices.
#include <cmath>
#include <memory>

#include "mxtrain/operator/identity.h"
#include "mxtrain/operators/svm_output/svm_output.h"

namespace mxtrain::svm_output {

template <typename T>
struct Slope {
  using A = AccumulatorOf<T>;
  const T *score, *label;
  int64_t classes;
  A margin, factor;
  bool linear;
  MXTRAIN_HD A operator()(int64_t i) const {
    const A x = static_cast<A>(score[i]), label_of_row = static_cast<A>(label[i / classes]);
    const bool own = static_cast<A>(i % classes) == std::floor(label_of_row);
    const A sign = own ? A(-1) : A(1), missing = margin + sign * x;
    if (!(missing > A(0))) return A(0);
    return sign * factor * (linear ? A(1) : A(2) * missing);
  }
};

template <typename Device>
class SvmOutput final : public Operator {
 public:
  explicit SvmOutput(const SvmOutputParam& param) : param_(param) {}
  void Forward(const ForwardArgs& args) override {
    CopyBlob(Device{args.ctx.run_ctx}, args.req[0], args.in_data[0], args.out_data[0]);
  }
  void Backward(const BackwardArgs& args) override {
    const TBlob& grad = args.in_grad[0];
    SwitchFloating(grad.type, "SVMOutput", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using A = AccumulatorOf<T>;
      MapOn<T>(Device{args.ctx.run_ctx}, grad, args.req[0],
               Slope<T>{args.out_data[0].dptr<T>(), args.in_data[1].dptr<T>(), grad.shape[1],
                        A(param_.margin), A(param_.regularization_coefficient), param_.use_linear});
    });
  }

 private:
  SvmOutputParam param_;
};

}  // namespace mxtrain::svm_output

MXTRAIN_KERNELS(svm_output, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(
      ReferenceKernel<SvmOutputProperty, svm_output::SvmOutput<Device>, Device>("SVMOutput"));
}
