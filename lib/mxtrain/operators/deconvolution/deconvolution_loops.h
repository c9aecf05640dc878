// SPDX-License-Identifier: Apache-2.0
#pragma once
// The reference loops of Deconvolution: those of the mirrored convolution, in other places. Written
// once for both devices: Device is OnCpu or OnGpu.
#include <limits>
#include <memory>

#include "mxtrain/operators/convolution/convolution_loops.h"
#include "mxtrain/operators/deconvolution/deconvolution.h"

namespace mxtrain::deconvolution {

using convolution::DataGradientElement;
using convolution::Loops;
using convolution::OutputElement;
using convolution::WeightGradientElement;
using P = DeconvolutionProperty;

template <typename Device>
class DeconvolutionReference final : public Operator {
 public:
  DeconvolutionReference(const ConvolutionSettings& mirror, bool bias)
      : mirror_(mirror), bias_(bias) {}

  void Forward(const ForwardArgs& args) override {
    if (args.req[0] == OpReqType::kNullOp) return;
    SwitchFloating(args.in_data[0].type, "Deconvolution", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const Loops<T> loops{{mirror_, args.out_data[0].shape, args.in_data[P::kData].shape}};
      ForColumns(Device{args.ctx.run_ctx}, args.out_data[0].Size(),
                 loops.geometry.group_out() * loops.geometry.window(),
                 DataGradientElement<T>{loops, args.in_data[P::kData].dptr<T>(),
                                        args.in_data[P::kWeight].dptr<T>(),
                                        bias_ ? args.in_data[P::kBias] : TBlob(),
                                        args.out_data[0].dptr<T>(), args.req[0]});
    });
  }

  void Backward(const BackwardArgs& args) override {
    const Device device{args.ctx.run_ctx};
    SwitchFloating(args.in_grad[0].type, "Deconvolution", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using A = AccumulatorOf<T>;
      const Loops<T> loops{{mirror_, args.out_grad[0].shape, args.in_data[P::kData].shape}};
      const T *head = args.out_grad[0].dptr<T>(), *data = args.in_data[P::kData].dptr<T>(),
              *weight = args.in_data[P::kWeight].dptr<T>();
      const TBlob &data_grad = args.in_grad[P::kData], &weight_grad = args.in_grad[P::kWeight];
      constexpr A kInfinity = std::numeric_limits<A>::infinity();
      if (args.req[P::kData] != OpReqType::kNullOp) {
        ForColumns(device, data_grad.Size(), loops.geometry.group_in() * loops.geometry.window(),
                   OutputElement<T>{loops, head, weight, nullptr, TBlob(), -kInfinity, kInfinity,
                                    data_grad.dptr<T>(), args.req[P::kData]});
      }
      if (args.req[P::kWeight] != OpReqType::kNullOp) {
        ForRows(device, weight_grad.Size(), loops.geometry.batch * loops.geometry.out[0],
                WeightGradientElement<T>{loops, data, head, weight_grad.dptr<T>(),
                                         args.req[P::kWeight]});
      }
      if (bias_) {
        weighted::SumToBias<T>(device, args.out_grad[0], ChannelView(args.out_grad[0].shape, 1),
                               args.in_grad[P::kBias], args.req[P::kBias], args.ctx.workspace);
      }
    });
  }

 private:
  ConvolutionSettings mirror_;
  bool bias_;
};

template <typename Device>
Expected<Plan, Refusal> PlanReference(const OperatorProperty& base, const PlanRequest& request,
                                      Backend&) {
  const auto& property = static_cast<const DeconvolutionProperty&>(base);
  const bool bias = !property.param().no_bias;
  Plan plan = PlainPlan(base, request);
  if (request.needs_backward && bias) {
    plan.backward_workspace =
        weighted::BytesOfBiasSums(request.in[P::kData].type, ChannelView(request.out[0].shape, 1));
  }
  plan.make = [mirror = property.MirrorOf(request.in[P::kData].shape), bias] {
    return std::make_unique<DeconvolutionReference<Device>>(mirror, bias);
  };
  return plan;
}

}  // namespace mxtrain::deconvolution

MXTRAIN_KERNELS(deconvolution, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(LastKernel<Device>("Deconvolution", deconvolution::PlanReference<Device>));
}
