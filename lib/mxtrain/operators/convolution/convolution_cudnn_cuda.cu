// SPDX-License-Identifier: Apache-2.0
// Convolution by cuDNN. Addends (bias, sum) are written to the output first; the products are then
// accumulated.
#include <algorithm>
#include <memory>

#include "mxtrain/base/math.h"
#include "mxtrain/device/cuda/cudnn_convolution.h"
#include "mxtrain/operator/elementwise.cuh"
#include "mxtrain/operator/rows.cuh"
#include "mxtrain/operators/convolution/convolution_loops.h"

namespace mxtrain::convolution {
namespace {

constexpr int kCudnnRank = 100;
constexpr int64_t kAlignment = 256;  // bytes, of a cuDNN workspace

template <typename T>
struct BiasAndSum {
  weighted::BiasOfChannel<T> bias;
  const T* sum;
  MXTRAIN_HD AccumulatorOf<T> operator()(int64_t i) const {
    return bias(i) + (sum ? AccumulatorOf<T>(sum[i]) : AccumulatorOf<T>(0));
  }
};

// NaN stays NaN.
template <typename C>
struct Bounded {
  C low, high;
  MXTRAIN_HD C operator()(C x) const { return x < low ? low : x > high ? high : x; }
};

class ConvolutionCudnn final : public Operator {
 public:
  ConvolutionCudnn(const ConvolutionSettings& settings,
                   std::shared_ptr<const cuda::CudnnConvolution> kernel)
      : settings_(settings), kernel_(std::move(kernel)) {}

  void Forward(const ForwardArgs& args) override {
    if (args.req[0] == OpReqType::kNullOp) return;
    const OnGpu device{args.ctx.run_ctx};
    const bool prepared = !settings_.no_bias || settings_.with_sum;
    if (prepared) Prepare(device, args.in_data, args.req[0], args.out_data[0]);
    kernel_->Forward(StreamOf(args.ctx.run_ctx), args.in_data[P::kData].data,
                     args.in_data[P::kWeight].data, args.out_data[0].data,
                     prepared || args.req[0] == OpReqType::kAddTo, Aligned(args.ctx.workspace));
    if (settings_.act != Epilogue::kNone) Activate(device, args.out_data[0]);
  }

  void Backward(const BackwardArgs& args) override {
    CudaStream& stream = StreamOf(args.ctx.run_ctx);
    const void* head = args.out_grad[0].data;
    if (args.req[P::kData] != OpReqType::kNullOp) {
      kernel_->DataGradient(stream, head, args.in_data[P::kWeight].data,
                            args.in_grad[P::kData].data, args.req[P::kData] == OpReqType::kAddTo,
                            Aligned(args.ctx.workspace));
    }
    if (args.req[P::kWeight] != OpReqType::kNullOp) {
      kernel_->WeightGradient(
          stream, head, args.in_data[P::kData].data, args.in_grad[P::kWeight].data,
          args.req[P::kWeight] == OpReqType::kAddTo, Aligned(args.ctx.workspace));
    }
    if (settings_.no_bias) return;
    SwitchFloating(args.out_grad[0].type, "Convolution", [&](auto tag) {
      weighted::SumToBias<typename decltype(tag)::type>(
          OnGpu{args.ctx.run_ctx}, args.out_grad[0],
          ChannelView(args.out_grad[0].shape, 1, args.out_grad[0].layout), args.in_grad[P::kBias],
          args.req[P::kBias], args.ctx.workspace.data);
    });
  }

 private:
  static void* Aligned(const TBlob& workspace) {
    const auto address = reinterpret_cast<uintptr_t>(workspace.data);
    return reinterpret_cast<void*>(RoundUp(address, kAlignment));
  }

  void Prepare(const OnGpu& device, std::span<const TBlob> in, OpReqType req,
               const TBlob& out) const {
    SwitchFloating(out.type, "Convolution", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const TBlob bias = settings_.no_bias ? TBlob() : in[P::kBias];
      const T* sum = settings_.with_sum ? in.back().dptr<T>() : nullptr;
      MapOn<T>(device, out, req, BiasAndSum<T>{{bias, ChannelView(out.shape, 1, out.layout)}, sum});
    });
  }
  void Activate(const OnGpu& device, const TBlob& out) const {
    SwitchFloating(out.type, "Convolution", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using C = ComputeOf<T>;
      MapElements<T>(device, out, OpReqType::kWriteInplace,
                     Bounded<C>{C(settings_.low()), C(settings_.high())}, out);
    });
  }

  ConvolutionSettings settings_;
  std::shared_ptr<const cuda::CudnnConvolution> kernel_;
};

// Of images, or of sequences as images with one column.
cuda::ConvolutionShape ShapeOf(const ConvolutionGeometry& g) {
  cuda::ConvolutionShape shape{g.batch, g.in_channels, g.out_channels, g.groups, {}, {}, {}, {}, {},
                               {}};
  for (int i = 0; i < 2; ++i) {
    shape.in[i] = g.in[i];
    shape.out[i] = g.out[i];
    shape.kernel[i] = g.kernel[i];
    shape.stride[i] = g.stride[i];
    shape.dilate[i] = g.dilate[i];
    shape.pad[i] = g.pad[i];
  }
  return shape;
}

bool Wanted(const PlanRequest& request, int argument) {
  return request.needs_backward &&
         request.grad_req[static_cast<size_t>(argument)] != OpReqType::kNullOp;
}

// Matrix units for narrow types expect channels last; other layouts would be converted before and
// after.
Layout BestLayout(const PlanRequest& request, Backend& backend) {
  const DType type = request.in[P::kData].type;
  const bool matrix_units = SizeOf(type) < SizeOf(DType::kFloat32) ||
                            (type == DType::kFloat32 && request.math == Math::kTf32);
  return matrix_units ? backend.Intern(NewChannelsLast(request.out[0].shape.ndim())) : Layout();
}

Expected<Plan, Refusal> MakePlan(const OperatorProperty& base, const PlanRequest& request,
                                 Backend& backend) {
  const ConvolutionSettings settings =
      static_cast<const ConvolutionProperty&>(base).SettingsFor(request.in[P::kData].shape);
  if (!IsFloating(request.in[P::kData].type))
    return Refusal{format("no function for {}", NameOf(request.in[P::kData].type))};
  if (settings.axes() > 2) return Refusal{"one or two spatial axes only"};
  if (!settings.even_pad()) return Refusal{"equal padding on both sides only"};
  if (const std::string why = WhyNotEpilogue(settings, request); !why.empty()) return Refusal{why};
  cuda::ConvolutionOptions options;
  options.type = request.in[P::kData].type;
  options.math = request.math == Math::kExact  ? cuda::ConvolutionMath::kPlain
                 : request.math == Math::kTf32 ? cuda::ConvolutionMath::kTf32
                                               : cuda::ConvolutionMath::kWinograd;
  options.deterministic = request.deterministic;
  options.data_gradient = Wanted(request, P::kData);
  options.weight_gradient = Wanted(request, P::kWeight);
  const ConvolutionGeometry geometry(settings, request.in[P::kData].shape, request.out[0].shape);
  Layout layout = BestLayout(request, backend);
  options.channels_last = !layout.plain();
  std::shared_ptr<const cuda::CudnnConvolution> kernel =
      cuda::CudnnConvolution::Make(backend, request.ctx.id, ShapeOf(geometry), options);
  if (!kernel && options.channels_last) {
    layout = Layout();
    options.channels_last = false;
    kernel = cuda::CudnnConvolution::Make(backend, request.ctx.id, ShapeOf(geometry), options);
  }
  if (!kernel) return Refusal{"cuDNN has no algorithm for this convolution"};
  Plan plan = PlainPlan(base, request);
  LieAs(layout, base, request, &plan);
  plan.forward_workspace = kernel->forward_workspace() + kAlignment;
  if (request.needs_backward)
    plan.backward_workspace =
        std::max(kernel->backward_workspace() + kAlignment, BiasWorkspace(settings, request));
  plan.deterministic = kernel->deterministic();
  plan.make = [settings, kernel] { return std::make_unique<ConvolutionCudnn>(settings, kernel); };
  return plan;
}

}  // namespace
}  // namespace mxtrain::convolution

MXTRAIN_OPERATOR(convolution_cudnn_cuda, registry) {
  using namespace mxtrain;
  for (const char* op : ConvolutionProperty::kOperators) {
    registry.AddKernel(
        {op, DeviceType::kGPU, "cudnn", convolution::kCudnnRank, convolution::MakePlan});
  }
}
