// SPDX-License-Identifier: Apache-2.0
#pragma once
// my_channel_scale: y = gamma[c] x + beta[c] for every element x of channel c of data [N, C, ...].
#include <memory>

#include "mxtrain/operator/axes.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operator/reduction.h"

namespace my_channel_scale {

using namespace mxtrain;

class Property final : public PropertyWithParam<NoParam> {
 public:
  enum Argument { kData, kGamma, kBeta };

  std::string TypeString() const override { return "my_channel_scale"; }
  std::string Description() const override { return "scales and shifts every channel"; }
  std::vector<std::string> ListArguments() const override { return {"data", "gamma", "beta"}; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>*) const override {
    UnifyShape((*out)[0], &(*in)[kData], TypeString(), "output");
    const TShape& data = (*in)[kData];
    if (!data.has_rank()) return false;
    const TShape channels{data[CheckAxis(1, data, TypeString())]};
    UnifyShape(channels, &(*in)[kGamma], TypeString(), "gamma");
    UnifyShape(channels, &(*in)[kBeta], TypeString(), "beta");
    (*out)[0] = data;
    return data.known();
  }
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>& in_data,
                                             const std::vector<int>&) const override {
    return {out_grad[0], in_data[kData], in_data[kGamma]};
  }
  std::vector<InplacePair> ForwardInplaceOption() const override { return {{0, kData}}; }
};

// An array along axis 1 of `data`.
inline TShape ChannelShape(const TShape& data) {
  return AlongAxis(data.ndim(), 1, data[1]);
}

struct Scale {
  template <typename C>
  MXTRAIN_HD C operator()(C x, C gamma, C beta) const {
    return gamma * x + beta;
  }
};
struct Times {
  template <typename C>
  MXTRAIN_HD C operator()(C a, C b) const {
    return a * b;
  }
};
struct Same {
  template <typename C>
  MXTRAIN_HD C operator()(C g) const {
    return g;
  }
};

template <typename Device>
class ChannelScale final : public Operator {
 public:
  using P = Property;

  void Forward(const ForwardArgs& args) override {
    const TBlob& out = args.out_data[0];
    SwitchFloating(out.type, "my_channel_scale", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const TShape channels = ChannelShape(out.shape);
      MapBroadcast<T>(Device{args.ctx.run_ctx}, out, args.req[0], Scale{},
                      Broadcast<T>(args.in_data[P::kData]),
                      Broadcast<T>(args.in_data[P::kGamma].template dptr<T>(), channels),
                      Broadcast<T>(args.in_data[P::kBeta].template dptr<T>(), channels));
    });
  }

  void Backward(const BackwardArgs& args) override {
    const Device device{args.ctx.run_ctx};
    double* scratch = args.ctx.workspace.dptr<double>();
    SwitchFloating(args.out_grad[0].type, "my_channel_scale", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const Broadcast<T> head(args.out_grad[0]), data(args.in_data[P::kData]);
      const TShape channels = ChannelShape(head.shape);
      const Broadcast<T> gamma(args.in_data[P::kGamma].template dptr<T>(), channels);
      const auto gradient = [&](int argument) {
        TBlob blob = args.in_grad[static_cast<size_t>(argument)];
        if (argument != P::kData) blob.shape = channels;
        return blob;
      };
      SumBroadcast<T>(device, head.shape, gradient(P::kGamma), args.req[P::kGamma], scratch,
                      Times{}, head, data);
      SumBroadcast<T>(device, head.shape, gradient(P::kBeta), args.req[P::kBeta], scratch, Same{},
                      head);
      MapBroadcast<T>(device, gradient(P::kData), args.req[P::kData], Times{}, head, gamma);
    });
  }
};

template <typename Device>
Expected<Plan, Refusal> MakePlan(const OperatorProperty& property, const PlanRequest& request,
                                 Backend&) {
  Plan plan = PlainPlan(property, request);
  plan.backward_workspace = SumScratchBytes(request.in[0].shape, ChannelShape(request.in[0].shape));
  plan.make = [] { return std::make_unique<ChannelScale<Device>>(); };
  return plan;
}

}  // namespace my_channel_scale

MXTRAIN_KERNELS(my_channel_scale, Device, registry) {
  registry.AddKernel(
      mxtrain::LastKernel<Device>("my_channel_scale", my_channel_scale::MakePlan<Device>));
}
