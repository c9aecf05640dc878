// SPDX-License-Identifier: Apache-2.0
#pragma once
// Convolution on a GPU by a library such as cuDNN: everything around the library's calls. Where the
// library does not fuse the epilogue, addends (bias, sum) are written to the output first; the
// products are then accumulated.
//
// Device is OnGpu. Library is cuda::CudnnConvolution, or, for tests on a host, a class with the
// same functions.
#include <algorithm>
#include <memory>

#include "mxtrain/base/math.h"
#include "mxtrain/device/convolution_options.h"
#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operators/convolution/convolution_loops.h"

namespace mxtrain::convolution {

template <typename T>
struct BiasAndSum {
  weighted::BiasOfChannel<T> bias;
  const T* sum;
  MXTRAIN_HD AccumulatorOf<T> operator()(int64_t i) const {
    return bias(i) + AccumulatorOf<T>(sum[i]);
  }
};

// NaN stays NaN.
template <typename C>
struct Bounded {
  C low, high;
  MXTRAIN_HD C operator()(C x) const { return x < low ? low : x > high ? high : x; }
};

template <typename Device, typename Library>
class ConvolutionByLibrary final : public Operator {
 public:
  ConvolutionByLibrary(const ConvolutionSettings& settings, std::shared_ptr<const Library> library)
      : settings_(settings), library_(std::move(library)) {}

  void Forward(const ForwardArgs& args) override {
    const bool sums = settings_.sums_output && args.req[P::kSums] != OpReqType::kNullOp;
    if (!sums) return WriteOutput(args);
    if (ForwardSums(args)) return;
    WriteOutput(args);
    SumOutput(args);
  }

  void Backward(const BackwardArgs& args) override {
    const RunContext ctx = args.ctx.run_ctx;
    const TBlob& head = args.out_grad[0];
    if (args.req[P::kData] != OpReqType::kNullOp) WriteDataGradient(args);
    if (args.req[P::kWeight] != OpReqType::kNullOp) {
      library_->WeightGradient(
          ctx, head.data, args.in_data[P::kData].data, args.in_grad[P::kWeight].data,
          args.req[P::kWeight] == OpReqType::kAddTo, Aligned(args.ctx.workspace));
    }
    if (settings_.no_bias) return;
    SwitchFloating(head.type, "Convolution", [&](auto tag) {
      weighted::SumToBias<typename decltype(tag)::type>(
          Device{ctx}, head, ChannelView(head.shape, 1, head.layout), args.in_grad[P::kBias],
          args.req[P::kBias], args.ctx.workspace);
    });
  }

 private:
  void WriteOutput(const ForwardArgs& args) const {
    if (args.req[0] == OpReqType::kNullOp) return;
    if (library_->fused() && args.req[0] != OpReqType::kAddTo && ForwardFused(args)) return;
    const Device device{args.ctx.run_ctx};
    const bool prepared = !settings_.no_bias || settings_.with_sum;
    if (prepared) Prepare(device, args.in_data, args.req[0], args.out_data[0]);
    library_->Forward(args.ctx.run_ctx, args.in_data[P::kData].data, args.in_data[P::kWeight].data,
                      args.out_data[0].data, prepared || args.req[0] == OpReqType::kAddTo,
                      Aligned(args.ctx.workspace));
    if (settings_.act != Epilogue::kNone) Activate(device, args.out_data[0]);
  }

  void WriteDataGradient(const BackwardArgs& args) const {
    if (settings_.gates_gradient && GateByLibrary(args)) return;
    const TBlob& gradient = args.in_grad[P::kData];
    library_->DataGradient(args.ctx.run_ctx, args.out_grad[0].data, args.in_data[P::kWeight].data,
                           gradient.data, args.req[P::kData] == OpReqType::kAddTo,
                           Aligned(args.ctx.workspace));
    if (!settings_.gates_gradient) return;
    SwitchFloating(gradient.type, "Convolution", [&](auto tag) {
      using T = typename decltype(tag)::type;
      WriteGated<T>(Device{args.ctx.run_ctx}, settings_, args,
                    GradientInMemory<T>{gradient.dptr<T>()});
    });
  }
  bool GateByLibrary(const BackwardArgs& args) const {
    const auto at = [&](P::NormArgument i) {
      return static_cast<size_t>(P::IndexOf(settings_, i));
    };
    const auto norm = [&](P::NormArgument i) {
      return static_cast<const float*>(args.in_data[at(i)].data);
    };
    const typename Library::Normalisation before{args.in_data[at(P::kNormData)].data,
                                                 norm(P::kNormMean), norm(P::kNormInverse),
                                                 norm(P::kNormGamma), norm(P::kNormBeta)};
    return library_->DataGradientGated(
        args.ctx.run_ctx, args.out_grad[0].data, args.in_data[P::kWeight].data, before,
        args.in_grad[P::kData].data, static_cast<float*>(args.in_grad[at(P::kNormInverse)].data),
        static_cast<float*>(args.in_grad[at(P::kNormMean)].data), Aligned(args.ctx.workspace));
  }
  bool ForwardSums(const ForwardArgs& args) const {
    return library_->ForwardSums(args.ctx.run_ctx, args.in_data[P::kData].data,
                                 args.in_data[P::kWeight].data, args.out_data[P::kOutput].data,
                                 args.out_data[P::kSums].template dptr<float>(),
                                 Aligned(args.ctx.workspace));
  }
  void SumOutput(const ForwardArgs& args) const {
    const TBlob& output = args.out_data[P::kOutput];
    SwitchFloating(output.type, "Convolution", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const ChannelView view(output.shape, 1, output.layout);
      convolution::SumOutput<AccumulatorOf<T>>(
          Device{args.ctx.run_ctx}, view, Powers<T>{{view, output.dptr<T>()}},
          args.out_data[P::kSums], args.req[P::kSums], args.ctx.workspace);
    });
  }
  bool ForwardFused(const ForwardArgs& args) const {
    const void* bias = settings_.no_bias ? nullptr : args.in_data[P::kBias].data;
    const void* sum = settings_.with_sum ? args.in_data.back().data : nullptr;
    const bool done = library_->ForwardFused(args.ctx.run_ctx, args.in_data[P::kData].data,
                                             args.in_data[P::kWeight].data, bias, sum,
                                             args.out_data[0].data, Aligned(args.ctx.workspace));
    if (done && settings_.act == Epilogue::kRelu6)
      Activate(Device{args.ctx.run_ctx}, args.out_data[0]);
    return done;
  }

  static void* Aligned(const TBlob& workspace) {
    const auto address = reinterpret_cast<uintptr_t>(workspace.data);
    return reinterpret_cast<void*>(RoundUp(address, Library::kAlignment));
  }

  void Prepare(const Device& device, std::span<const TBlob> in, OpReqType req,
               const TBlob& out) const {
    SwitchFloating(out.type, "Convolution", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const TBlob bias = settings_.no_bias ? TBlob() : in[P::kBias];
      const ChannelView view(out.shape, 1, out.layout);
      if (!settings_.with_sum) return weighted::PutBias<T>(device, bias, view, out, req);
      MapOn<T>(device, out, req, BiasAndSum<T>{{bias, view}, in.back().dptr<T>()});
    });
  }
  void Activate(const Device& device, const TBlob& out) const {
    SwitchFloating(out.type, "Convolution", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using C = ComputeOf<T>;
      MapElements<T>(device, out, OpReqType::kWriteInplace,
                     Bounded<C>{C(settings_.low()), C(settings_.high())}, out);
    });
  }

  ConvolutionSettings settings_;
  std::shared_ptr<const Library> library_;
};

// Of images, or of sequences as images with one column.
inline ConvolutionShape LibraryShapeOf(const ConvolutionGeometry& g) {
  ConvolutionShape shape{g.batch, g.in_channels, g.out_channels, g.groups, {}, {}, {}, {}, {}, {}};
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

inline ConvolutionMath LibraryMathOf(const PlanRequest& request) {
  return request.math == Math::kExact  ? ConvolutionMath::kPlain
         : request.math == Math::kTf32 ? ConvolutionMath::kTf32
                                       : ConvolutionMath::kWinograd;
}

// Why a library's kernel cannot do the work of batch norms too, or "".
inline std::string WhyNotWithBatchNorm(const ConvolutionSettings& settings,
                                       const PlanRequest& request) {
  if (settings.sums_output && request.out_req[P::kSums] != OpReqType::kNullOp) {
    if (!settings.no_bias) return "no sums with a bias";
    if (request.out_req[P::kOutput] != OpReqType::kWriteTo ||
        request.out_req[P::kSums] != OpReqType::kWriteTo)
      return "sums only if both outputs are written";
  }
  if (settings.gates_gradient && request.needs_backward) {
    const auto req = [&](int argument) { return request.grad_req[static_cast<size_t>(argument)]; };
    for (const int i :
         {+P::kData, P::IndexOf(settings, P::kNormMean), P::IndexOf(settings, P::kNormInverse)}) {
      if (req(i) != req(P::kData) || req(i) == OpReqType::kAddTo)
        return "gated gradients are written, all or none";
    }
  }
  return "";
}

// Bounds from both sides are left to a pass over the output: no fast kernel of cuDNN has them.
inline ConvolutionEpilogue LibraryEpilogueOf(const ConvolutionSettings& settings,
                                             const PlanRequest& request) {
  if (request.out_req[0] == OpReqType::kAddTo) return {};
  ConvolutionEpilogue epilogue;
  epilogue.sum = settings.with_sum;
  epilogue.bias = !settings.no_bias;
  if (epilogue.bias) epilogue.bias_type = request.in[P::kBias].type;
  epilogue.relu = settings.act == Epilogue::kRelu;
  return epilogue;
}

// Matrix units expect channels last; other layouts would be converted before and after.
inline Layout BestLayout(const PlanRequest& request, ConvolutionMath math, Backend& backend) {
  const DType type = request.in[P::kData].type;
  const bool matrix_units = SizeOf(type) < SizeOf(DType::kFloat32) ||
                            (type == DType::kFloat32 && math == ConvolutionMath::kTf32);
  return matrix_units ? backend.Intern(NewChannelsLast(request.out[0].shape.ndim())) : Layout();
}

template <typename Device, typename Library>
Expected<Plan, Refusal> PlanByLibrary(const OperatorProperty& base, const PlanRequest& request,
                                      Backend& backend) {
  const ConvolutionSettings settings =
      static_cast<const ConvolutionProperty&>(base).SettingsFor(request.in[P::kData].shape);
  if (!IsFloating(request.in[P::kData].type))
    return Refusal{format("no function for {}", NameOf(request.in[P::kData].type))};
  if (settings.axes() > 2) return Refusal{"one or two spatial axes only"};
  if (!settings.even_pad()) return Refusal{"equal padding on both sides only"};
  if (const std::string why = WhyNotEpilogue(settings, request); !why.empty()) return Refusal{why};
  if (const std::string why = WhyNotWithBatchNorm(settings, request); !why.empty())
    return Refusal{why};
  const auto wanted = [&](int argument) {
    return request.needs_backward &&
           request.grad_req[static_cast<size_t>(argument)] != OpReqType::kNullOp;
  };
  ConvolutionOptions options;
  options.type = request.in[P::kData].type;
  options.math = LibraryMathOf(request);
  options.deterministic = request.deterministic;
  options.data_gradient = wanted(P::kData);
  options.weight_gradient = wanted(P::kWeight);
  const auto adds = [&](int argument) {
    return request.grad_req[static_cast<size_t>(argument)] == OpReqType::kAddTo;
  };
  options.data_gradient_adds = options.data_gradient && adds(P::kData);
  options.weight_gradient_adds = options.weight_gradient && adds(P::kWeight);
  options.forward_adds =
      !settings.no_bias || settings.with_sum || request.out_req[0] == OpReqType::kAddTo;
  options.epilogue = LibraryEpilogueOf(settings, request);
  options.sums = settings.sums_output && request.out_req[P::kSums] != OpReqType::kNullOp;
  options.gated = settings.gates_gradient && options.data_gradient;
  const ConvolutionShape shape = LibraryShapeOf(
      ConvolutionGeometry(settings, request.in[P::kData].shape, request.out[0].shape));
  Layout layout = BestLayout(request, options.math, backend);
  options.channels_last = !layout.plain();
  std::shared_ptr<const Library> library = Library::Make(backend, request.ctx.id, shape, options);
  if (!library && options.channels_last) {
    layout = Layout();
    options.channels_last = false;
    library = Library::Make(backend, request.ctx.id, shape, options);
  }
  if (!library) return Refusal{format("{} has no algorithm for this convolution", Library::kName)};
  if (options.sums && !library->sums())
    return Refusal{format("{} does not sum the output of this convolution", Library::kName)};
  if (options.gated && !library->gated())
    return Refusal{format("{} does not gate the gradient of this convolution", Library::kName)};
  Plan plan = PlainPlan(base, request);
  LieAs(layout, base, request, &plan);
  if (library->fused() && settings.with_sum) plan.forward_inplace.clear();  // the sum is read
  plan.forward_workspace = std::max(library->forward_workspace() + Library::kAlignment,
                                    BytesOfOutputSums(settings, request, layout));
  if (request.needs_backward)
    plan.backward_workspace = std::max(library->backward_workspace() + Library::kAlignment,
                                       std::max(BiasWorkspace(settings, request, layout),
                                                BytesOfGatedSums(settings, request, layout)));
  plan.deterministic = library->deterministic();
  plan.make = [settings, library] {
    return std::make_unique<ConvolutionByLibrary<Device, Library>>(settings, library);
  };
  return plan;
}

// The rank is better than that of the reference loops.
template <typename Device, typename Library>
void AddLibraryKernels(const char* name, OperatorRegistry& registry) {
  constexpr int kLibraryRank = 100;
  for (const char* op : {P::kOperators[0], P::kOperators[1], P::kWithBatchNorm})
    registry.AddKernel({op, Device::kType, name, kLibraryRank, PlanByLibrary<Device, Library>});
}

}  // namespace mxtrain::convolution
