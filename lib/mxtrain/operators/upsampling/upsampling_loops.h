// SPDX-License-Identifier: Apache-2.0
#pragma once
// UpSampling, written once for all devices.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "mxtrain/operator/resample.h"
#include "mxtrain/operators/upsampling/depthwise_rows.h"
#include "mxtrain/operators/upsampling/depthwise_transposed.h"
#include "mxtrain/operators/upsampling/upsampling.h"

namespace mxtrain::upsampling {

// nearest: input i is enlarged to planes of the output's size. Inputs are joined along the
// channels, or added.
template <typename Device>
class RepeatImages final : public Operator {
 public:
  using Resamplers = std::vector<Resampler<Device, NearestTaps>>;  // one per input

  RepeatImages(const Resamplers& resamplers, bool joins) : resamplers_(resamplers), joins_(joins) {}

  void Forward(const ForwardArgs& args) override {
    SwitchFloating(args.out_data[0].type, "UpSampling", [&](auto tag) {
      using T = typename decltype(tag)::type;
      int64_t channel = 0;
      OpReqType req = args.req[0];
      for (size_t i = 0; i < resamplers_.size(); ++i) {
        const int64_t inner = resamplers_[i].inner();
        resamplers_[i].Forward(args.ctx, AllPlanes<const T>(args.in_data[i], inner),
                               PlanesOf<T>(args.out_data[0], args.in_data[i].shape, i, channel),
                               req);
        channel += args.in_data[i].shape[1];
        if (!joins_ && req != OpReqType::kNullOp) req = OpReqType::kAddTo;
      }
    });
  }

  void Backward(const BackwardArgs& args) override {
    SwitchFloating(args.out_grad[0].type, "UpSampling", [&](auto tag) {
      using T = typename decltype(tag)::type;
      int64_t channel = 0;
      for (size_t i = 0; i < resamplers_.size(); ++i) {
        resamplers_[i].Backward(
            args.ctx, PlanesOf<const T>(args.out_grad[0], args.in_grad[i].shape, i, channel),
            AllPlanes<T>(args.in_grad[i], resamplers_[i].inner()), args.req[i]);
        channel += args.in_grad[i].shape[1];
      }
    });
  }

 private:
  // The planes of the output that belong to input i, whose first channel there is `channel`.
  template <typename T>
  PlaneArray<T> PlanesOf(const TBlob& output, const TShape& input, size_t i,
                         int64_t channel) const {
    PlaneArray<T> all = AllPlanes<T>(output, resamplers_[i].inner());
    if (!joins_ || all.data == nullptr) return all;
    const int64_t plane = resamplers_[i].out_size();
    return {all.data + channel * plane, input[0] * input[1], std::max<int64_t>(input[1], 1),
            output.shape[1] * plane};
  }

  const Resamplers resamplers_;
  const bool joins_;
};

// bilinear.
template <typename Device>
class TransposedConvolution final : public Operator {
 public:
  explicit TransposedConvolution(const Enlargement& shape) : shape_(shape) {}

  void Forward(const ForwardArgs& args) override {
    if (args.req[0] == OpReqType::kNullOp) return;
    SwitchFloating(args.in_data[0].type, "UpSampling", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T *data = args.in_data[0].dptr<T>(), *weight = args.in_data[1].dptr<T>();
      T* out = args.out_data[0].dptr<T>();
      if constexpr (kRows) {
        const bool add = args.req[0] == OpReqType::kAddTo;
        ForPlanes<T>(args.ctx, shape_.planes(), shape_.out_cells(), /*backward=*/false,
                     [&](const DepthwiseRows<T>& rows, int64_t plane) {
                       rows.Forward(plane, data, weight, add, out);
                     });
      } else {
        ForColumns(Device{args.ctx.run_ctx}, args.out_data[0].Size(), 4,
                   OutputElement<T>{shape_, data, weight, out, args.req[0]});
      }
    });
  }

  void Backward(const BackwardArgs& args) override {
    SwitchFloating(args.out_grad[0].type, "UpSampling", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* head = args.out_grad[0].dptr<T>();
      if (args.req[0] != OpReqType::kNullOp)
        BackwardData<T>(args.ctx, head, args.in_data[1].dptr<T>(), args.req[0], args.in_grad[0]);
      if (args.req[1] != OpReqType::kNullOp)
        BackwardWeight<T>(args.ctx, head, args.in_data[0].dptr<T>(), args.req[1], args.in_grad[1]);
    });
  }

 private:
  static constexpr bool kRows = Device::kType == DeviceType::kCPU;

  template <typename T>
  void BackwardData(const OpContext& ctx, const T* head, const T* weight, OpReqType req,
                    const TBlob& gradient) const {
    if constexpr (kRows) {
      ForPlanes<T>(ctx, shape_.planes(), shape_.out_cells(), /*backward=*/true,
                   [&](const DepthwiseRows<T>& rows, int64_t plane) {
                     rows.BackwardData(plane, head, weight, req == OpReqType::kAddTo,
                                       gradient.dptr<T>());
                   });
    } else {
      ForColumns(Device{ctx.run_ctx}, gradient.Size(), shape_.kernel() * shape_.kernel(),
                 DataGradient<T>{shape_, head, weight, gradient.dptr<T>(), req});
    }
  }

  template <typename T>
  void BackwardWeight(const OpContext& ctx, const T* head, const T* data, OpReqType req,
                      const TBlob& gradient) const {
    if constexpr (kRows) {
      ForPlanes<T>(ctx, shape_.channels, shape_.images * shape_.out_cells(), /*backward=*/true,
                   [&](const DepthwiseRows<T>& rows, int64_t channel) {
                     rows.BackwardWeight(channel, head, data, req, gradient.dptr<T>());
                   });
    } else {
      ForRows(Device{ctx.run_ctx}, gradient.Size(), shape_.images * shape_.cells(),
              WeightGradient<T>{shape_, head, data, gradient.dptr<T>(), req});
    }
  }

  // f(rows, n) for n in [0, count), each of `work` elements, in parallel.
  template <typename T, typename F>
  void ForPlanes(const OpContext& ctx, int64_t count, int64_t work, bool backward,
                 const F& f) const {
    const int64_t bytes =
        DepthwiseRows<T>::Bytes(shape_, static_cast<int64_t>(sizeof(AccumulatorOf<T>)), backward);
    const int64_t grain = std::max<int64_t>(kParallelGrain / std::max<int64_t>(work, 1), 1);
    ParallelForPieces(count, grain, [&](int64_t begin, int64_t end, int piece) {
      const DepthwiseRows<T> rows(shape_, ctx.workspace.dptr<char>() + piece * bytes);
      for (int64_t n = begin; n < end; ++n) f(rows, n);
    });
  }

  const Enlargement shape_;
};

template <typename Device>
Plan BilinearPlan(const PlanRequest& request, int scale, Plan plan) {
  const Enlargement shape(request.in[0].shape, scale);
  if constexpr (Device::kType == DeviceType::kCPU) {
    const int64_t element = request.in[0].type == DType::kFloat64 ? sizeof(double) : sizeof(float);
    const auto bytes = [&](bool backward) {
      return std::max(request.threads, 1) * DepthwiseRows<float>::Bytes(shape, element, backward);
    };
    plan.forward_workspace = bytes(false);
    if (request.needs_backward) plan.backward_workspace = bytes(true);
  }
  plan.make = [shape] { return std::make_unique<TransposedConvolution<Device>>(shape); };
  return plan;
}

// How often a length fits into the output's.
inline int64_t FactorOf(int64_t length, int64_t target) {
  return length > 0 ? target / length : 1;
}

template <typename Device>
Plan NearestPlan(const OperatorProperty& base, const PlanRequest& request, bool sums, Plan plan) {
  const bool joins = request.in.size() > 1 && !sums;
  // With channels last the pixels of joined inputs would be apart.
  const Layout layout = joins ? Layout() : OfferedChannelsLast(request, request.in[0].shape);
  LieAs(layout, base, request, &plan);
  const TShape& out = request.out[0].shape;
  typename RepeatImages<Device>::Resamplers resamplers;
  for (const TensorSpec& spec : request.in) {
    resamplers.emplace_back(NearestTaps(spec.shape[2], FactorOf(spec.shape[2], out[2])),
                            NearestTaps(spec.shape[3], FactorOf(spec.shape[3], out[3])),
                            layout.plain() ? 1 : spec.shape[1]);
    const Resampler<Device, NearestTaps>& last = resamplers.back();
    plan.forward_workspace =
        std::max(plan.forward_workspace, last.ForwardWorkspace(request.threads, spec.type));
    if (request.needs_backward)
      plan.backward_workspace =
          std::max(plan.backward_workspace, last.BackwardWorkspace(request.threads, spec.type));
  }
  plan.make = [resamplers, joins] {
    return std::make_unique<RepeatImages<Device>>(resamplers, joins);
  };
  return plan;
}

template <typename Device>
Expected<Plan, Refusal> MakePlan(const OperatorProperty& base, const PlanRequest& request,
                                 Backend&) {
  const UpSamplingParam& param = static_cast<const UpSamplingProperty&>(base).param();
  constexpr int64_t kLongest = int64_t{1} << 30;
  const TShape& out = request.out[0].shape;
  if (out[2] > kLongest || out[3] > kLongest) return Refusal{"an image longer than 2^30"};
  Plan plan = PlainPlan(base, request);
  if (param.sample_type == UpSamplingParam::kBilinear)
    return BilinearPlan<Device>(request, param.scale, std::move(plan));
  return NearestPlan<Device>(base, request, param.multi_input_mode == UpSamplingParam::kSum,
                             std::move(plan));
}

}  // namespace mxtrain::upsampling

MXTRAIN_KERNELS(upsampling, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(LastKernel<Device>("UpSampling", upsampling::MakePlan<Device>));
}
