// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/cuda/internal/cudnn_graph.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <utility>

#include "mxtrain/base/format.h"
#include "mxtrain/base/math.h"
#include "mxtrain/device/cuda/cudnn_descriptors.h"

namespace mxtrain::cuda {
namespace {

using Descriptor = cudnnBackendDescriptor_t;
using Name = cudnnBackendAttributeName_t;

// The properties of a device, by the numbers that they have since cuDNN 9.8: older headers lack
// them.
constexpr Name kHeuristicProperties = static_cast<Name>(204),
               kPlanProperties = static_cast<Name>(407);

// The attributes of the three operations, which have the same meaning in each. `data` and `out` are
// the arrays of the forward part or their gradients.
struct OperationNames {
  cudnnBackendDescriptorType_t type;
  Name alpha, beta, convolution, data, weight, out;
};

OperationNames NamesOf(ConvolutionPart part) {
  switch (part) {
    case ConvolutionPart::kDataGradient:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY};
    case ConvolutionPart::kWeightGradient:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY};
    case ConvolutionPart::kForward:
      break;
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y};
}

// The operations of a task, in order, and the arrays that they have in memory.
class Operations {
 public:
  Operations(const GraphTask& task, CudnnDescriptors* made)
      : task_(task),
        shape_(task.shape),
        made_(*made),
        type_(task.options.type),
        wide_(type_ == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32) {
    std::visit([&](const auto& end) { Append(end); }, task_.end);
  }

  std::span<const Descriptor> all() const { return all_; }
  const std::vector<GraphArray>& arrays() const { return arrays_; }

 private:
  using Shape = std::array<int64_t, 4>;
  using References = std::initializer_list<std::pair<Name, Descriptor>>;

  // In this order cuDNN has engines that it need not compile.
  void Append(const ConvolutionEpilogue& e) {
    Descriptor last = e.any() ? Virtual(OutShape()) : Result();
    AppendProducts(last);
    if (e.sum) {
      const Descriptor sum = Array(&GraphArrays::sum, OutShape(), type_);
      const Descriptor result = e.bias || e.relu ? Virtual(OutShape()) : Result();
      last = AppendBinary(CUDNN_POINTWISE_ADD, last, sum, result);
    }
    if (e.bias) {
      const Descriptor bias =
          Array(&GraphArrays::bias, OfChannels(shape_.out_channels), e.bias_type);
      const Descriptor result = e.relu ? Virtual(OutShape()) : Result();
      last = AppendBinary(CUDNN_POINTWISE_ADD, last, bias, result);
    }
    if (e.relu)
      AppendPointwise(CUDNN_POINTWISE_RELU_FWD, {{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, last},
                                                 {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, Result()}});
  }

  void Append(const OutputSums&) {
    const Descriptor result = Result();
    AppendProducts(result);
    const Shape channels = OfChannels(shape_.out_channels);
    const Descriptor sums = Array(&GraphArrays::sums, channels, DType::kFloat32),
                     squares = Array(&GraphArrays::square_sums, channels, DType::kFloat32);
    const Descriptor operation = made_.New(CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR);
    made_.Set(operation, CUDNN_ATTR_OPERATION_GENSTATS_MODE, CUDNN_TYPE_GENSTATS_MODE,
              CUDNN_GENSTATS_SUM_SQSUM);
    made_.Set(operation, CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC, CUDNN_TYPE_DATA_TYPE,
              CUDNN_DATA_FLOAT);
    Append(operation, {{CUDNN_ATTR_OPERATION_GENSTATS_XDESC, result},
                       {CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, sums},
                       {CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC, squares}});
  }

  void Append(const ReluGate&) {
    const Shape shape = DataShape(), channels = OfChannels(shape_.in_channels);
    const auto of_channels = [&](void* GraphArrays::*place) {
      return Array(place, channels, DType::kFloat32);
    };
    const Descriptor gradient = Virtual(shape), result = Result();
    const Descriptor x = Array(&GraphArrays::normalised, shape, type_);
    const Descriptor mean = of_channels(&GraphArrays::mean),
                     inverse = of_channels(&GraphArrays::inverse),
                     scale = of_channels(&GraphArrays::scale);
    AppendProducts(gradient);
    Descriptor y = AppendBinary(CUDNN_POINTWISE_SUB, x, mean, Virtual(shape));
    y = AppendBinary(CUDNN_POINTWISE_MUL, y, inverse, Virtual(shape));
    y = AppendBinary(CUDNN_POINTWISE_MUL, y, scale, Virtual(shape));
    y = AppendBinary(CUDNN_POINTWISE_ADD, y, of_channels(&GraphArrays::shift), Virtual(shape));
    AppendPointwise(CUDNN_POINTWISE_RELU_BWD, {{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, y},
                                               {CUDNN_ATTR_OPERATION_POINTWISE_DYDESC, gradient},
                                               {CUDNN_ATTR_OPERATION_POINTWISE_DXDESC, result}});
    const Descriptor operation = made_.New(CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR);
    made_.Set(operation, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MATH_PREC, CUDNN_TYPE_DATA_TYPE,
              CUDNN_DATA_FLOAT);
    // The last three, of which normalisation's gradient could be made, are required.
    Append(operation, {{CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MEAN_DESC, mean},
                       {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_INVSTD_DESC, inverse},
                       {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_BN_SCALE_DESC, scale},
                       {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_X_DESC, x},
                       {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DY_DESC, result},
                       {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_SCALE_DESC,
                        of_channels(&GraphArrays::scale_gradient)},
                       {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_BIAS_DESC,
                        of_channels(&GraphArrays::shift_gradient)},
                       {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_DY_SCALE_DESC, of_channels(nullptr)},
                       {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_X_SCALE_DESC, of_channels(nullptr)},
                       {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_BIAS, of_channels(nullptr)}});
  }

  // The operation, which is complete but for what it refers to.
  void Append(Descriptor operation, References references) {
    for (const auto& [name, to] : references)
      made_.Set(operation, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, to);
    made_.Finalize(operation);
    all_.push_back(operation);
  }

  Shape DataShape() const { return {shape_.batch, shape_.in_channels, shape_.in[0], shape_.in[1]}; }
  Shape OutShape() const {
    return {shape_.batch, shape_.out_channels, shape_.out[0], shape_.out[1]};
  }
  static Shape OfChannels(int64_t channels) { return {1, channels, 1, 1}; }

  Descriptor Data() { return Array(&GraphArrays::data, DataShape(), type_); }
  Descriptor Weight() {
    return Array(&GraphArrays::weight,
                 {shape_.out_channels, shape_.in_channels / shape_.groups, shape_.kernel[0],
                  shape_.kernel[1]},
                 type_);
  }
  Descriptor Out() { return Array(&GraphArrays::out, OutShape(), type_); }
  // What the part writes.
  Descriptor Result() {
    return task_.part == ConvolutionPart::kForward        ? Out()
           : task_.part == ConvolutionPart::kDataGradient ? Data()
                                                          : Weight();
  }

  // An array in memory; without a place, one that no caller wants.
  Descriptor Array(void* GraphArrays::*place, const Shape& shape, DType type) {
    arrays_.push_back({next_id_, place, shape[0] * shape[1] * shape[2] * shape[3], type});
    return Tensor(shape, type, /*is_virtual=*/false);
  }
  // An intermediate result, which is nowhere in memory.
  Descriptor Virtual(const Shape& shape) { return Tensor(shape, wide_, /*is_virtual=*/true); }

  Descriptor Tensor(const Shape& s, DType type, bool is_virtual) {
    const Shape strides = task_.options.channels_last
                              ? Shape{s[1] * s[2] * s[3], 1, s[1] * s[3], s[1]}
                              : Shape{s[1] * s[2] * s[3], s[2] * s[3], s[3], 1};
    const Descriptor tensor = made_.New(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    made_.Set(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, next_id_++);
    made_.Set(tensor, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, CudnnType(type));
    made_.Set(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, std::span<const int64_t>(s));
    made_.Set(tensor, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64,
              std::span<const int64_t>(strides));
    made_.Set(tensor, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, kGraphAlignment);
    made_.Set(tensor, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, is_virtual);
    made_.Finalize(tensor);
    return tensor;
  }

  // `result` in the place of the array that the part writes.
  void AppendProducts(Descriptor result) {
    const Descriptor window = made_.New(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    made_.Set(window, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, int64_t{2});
    made_.Set(window, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CudnnType(wide_));
    made_.Set(window, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE,
              CUDNN_CROSS_CORRELATION);
    const auto set = [&](Name name, const int64_t(&values)[2]) {
      made_.Set(window, name, CUDNN_TYPE_INT64, std::span<const int64_t>(values));
    };
    set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, shape_.pad);
    set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, shape_.pad);
    set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, shape_.stride);
    set(CUDNN_ATTR_CONVOLUTION_DILATIONS, shape_.dilate);
    made_.Finalize(window);

    const OperationNames names = NamesOf(task_.part);
    const auto unless = [&](ConvolutionPart part, Descriptor (Operations::*array)()) {
      return task_.part == part ? result : (this->*array)();
    };
    const Descriptor data = unless(ConvolutionPart::kDataGradient, &Operations::Data),
                     weight = unless(ConvolutionPart::kWeightGradient, &Operations::Weight),
                     out = unless(ConvolutionPart::kForward, &Operations::Out);
    const Descriptor operation = made_.New(names.type);
    // In the type of the sums: cuDNN reads them as such, whatever type they are said to have.
    if (wide_ == DType::kFloat64) {
      made_.Set(operation, names.alpha, CUDNN_TYPE_DOUBLE, 1.0);
      made_.Set(operation, names.beta, CUDNN_TYPE_DOUBLE, task_.add ? 1.0 : 0.0);
    } else {
      made_.Set(operation, names.alpha, CUDNN_TYPE_FLOAT, 1.0f);
      made_.Set(operation, names.beta, CUDNN_TYPE_FLOAT, task_.add ? 1.0f : 0.0f);
    }
    Append(operation, {{names.convolution, window},
                       {names.data, data},
                       {names.weight, weight},
                       {names.out, out}});
  }

  void AppendPointwise(cudnnPointwiseMode_t mode, References references) {
    const Descriptor function = made_.New(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    made_.Set(function, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
    made_.Set(function, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CudnnType(wide_));
    if (mode == CUDNN_POINTWISE_RELU_FWD)
      made_.Set(function, CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION,
                CUDNN_PROPAGATE_NAN);
    made_.Finalize(function);
    const Descriptor operation = made_.New(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    made_.Set(operation, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
              CUDNN_TYPE_BACKEND_DESCRIPTOR, function);
    Append(operation, references);
  }
  // y = mode(x, b), which is returned.
  Descriptor AppendBinary(cudnnPointwiseMode_t mode, Descriptor x, Descriptor b, Descriptor y) {
    AppendPointwise(mode, {{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x},
                           {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b},
                           {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y}});
    return y;
  }

  const GraphTask& task_;
  const ConvolutionShape& shape_;
  CudnnDescriptors& made_;
  const DType type_, wide_;
  int64_t next_id_ = 1;
  std::vector<Descriptor> all_;
  std::vector<GraphArray> arrays_;
};

// Errors of the Fourier method depend on the largest element of an image, not of a window.
bool Allowed(std::span<const cudnnBackendNumericalNote_t> notes,
             const ConvolutionOptions& options) {
  return std::none_of(notes.begin(), notes.end(), [&](cudnnBackendNumericalNote_t note) {
    switch (note) {
      case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:  // TF32
        return options.type == DType::kFloat32 && options.math != ConvolutionMath::kTf32;
      case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
        return options.deterministic;
      case CUDNN_NUMERICAL_NOTE_WINOGRAD:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13:
        return options.math == ConvolutionMath::kPlain;
      case CUDNN_NUMERICAL_NOTE_FFT:
      case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
      case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION:
        return true;
      default:
        return false;
    }
  });
}

// The values of an attribute, at most `most`.
template <typename T>
std::vector<T> ReadAll(CudnnDescriptors* from, Descriptor descriptor, Name name,
                       cudnnBackendAttributeType_t type, size_t most) {
  std::vector<T> values(most);
  values.resize(
      std::min(most, static_cast<size_t>(from->Get(descriptor, name, type, std::span(values)))));
  return values;
}

// Bytes of an array in the workspace.
int64_t SpaceOf(const GraphArray& array) {
  return RoundUp(array.elements * SizeOf(array.type), kGraphAlignment);
}

}  // namespace

CudnnDescriptors::~CudnnDescriptors() {
  while (!owned_.empty()) {
    cudnn_.DestroyDescriptor(owned_.back());
    owned_.pop_back();
  }
}

Descriptor CudnnDescriptors::New(cudnnBackendDescriptorType_t type) {
  if (!ok()) return nullptr;
  Descriptor made = nullptr;
  status_ = cudnn_.CreateDescriptor(type, &made);
  if (!ok()) return nullptr;
  owned_.push_back(made);
  return made;
}

std::vector<Descriptor> CudnnDescriptors::New(cudnnBackendDescriptorType_t type, int64_t count) {
  std::vector<Descriptor> made(static_cast<size_t>(count));
  for (Descriptor& descriptor : made) descriptor = New(type);
  return made;
}

void CudnnDescriptors::Finalize(Descriptor descriptor) {
  if (ok()) status_ = cudnn_.Finalize(descriptor);
}

Expected<CudnnGraph, Refusal> CudnnGraph::Make(const CudnnBackend& cudnn, const GraphDevice& device,
                                               const GraphTask& task) {
  if (task.Sums() && task.options.deterministic) return Refusal{"sums that vary between runs"};
  CudnnGraph made(cudnn, device, task);
  const Expected<Descriptor, Refusal> graph = made.Build();
  if (!graph) return graph.error();
  const std::vector<Engine> a = made.Propose(*graph, CUDNN_HEUR_MODE_A),
                            b = made.Propose(*graph, CUDNN_HEUR_MODE_B);
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    if (i < a.size()) made.Take(a[i]);
    if (i < b.size()) made.Take(b[i]);
  }
  if (made.engines_.empty() && task.ProductsOnly()) {
    for (const Engine& engine : made.Propose(*graph, CUDNN_HEUR_MODE_FALLBACK)) made.Take(engine);
  }
  if (made.engines_.empty()) return Refusal{"no engine computes what is allowed"};
  return made;
}

Expected<Descriptor, Refusal> CudnnGraph::Build() {
  const auto made = std::make_shared<CudnnDescriptors>(*cudnn_);
  const Operations operations(task_, made.get());
  const Descriptor graph = made->New(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  made->Set(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, operations.all());
  if (device_.handle)
    made->Set(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, device_.handle);
  made->Finalize(graph);
  if (!made->ok()) return made->refusal();
  owners_.push_back(made);
  arrays_ = operations.arrays();
  return graph;
}

// Those that are allowed; none if this heuristic fails.
std::vector<CudnnGraph::Engine> CudnnGraph::Propose(Descriptor graph, cudnnBackendHeurMode_t mode) {
  const auto made = std::make_shared<CudnnDescriptors>(*cudnn_);
  const Descriptor heuristic = made->New(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  made->Set(heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, graph);
  made->Set(heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  if (device_.properties)
    made->Set(heuristic, kHeuristicProperties, CUDNN_TYPE_BACKEND_DESCRIPTOR, device_.properties);
  made->Finalize(heuristic);
  const auto results = [&](std::span<Descriptor> into) {
    return made->Get(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, into);
  };
  // Without space for them the number is an upper bound.
  std::vector<Descriptor> configs = made->New(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, results({}));
  configs.resize(std::min(configs.size(), static_cast<size_t>(results(configs))));
  std::vector<Engine> engines;
  if (!made->ok()) return engines;
  for (const Descriptor config : configs) {
    Engine engine{config, "", true};
    if (Describe(config, &engine)) engines.push_back(std::move(engine));
  }
  owners_.push_back(made);
  return engines;
}

// False if it is not allowed, or cuDNN does not say what it is.
bool CudnnGraph::Describe(Descriptor config, Engine* engine) const {
  CudnnDescriptors made(*cudnn_);
  Descriptor kernel = made.New(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  made.Get(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR,
           std::span(&kernel, 1));
  int64_t index = -1;
  made.Get(kernel, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, std::span(&index, 1));
  const auto notes = ReadAll<cudnnBackendNumericalNote_t>(
      &made, kernel, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
      CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  const auto behavior =
      ReadAll<cudnnBackendBehaviorNote_t>(&made, kernel, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE,
                                          CUDNN_TYPE_BEHAVIOR_NOTE, CUDNN_BEHAVIOR_NOTE_TYPE_COUNT);

  const auto knobs_of = [&](std::span<Descriptor> into) {
    return made.Get(config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, into);
  };
  std::vector<Descriptor> knobs =
      made.New(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, CUDNN_KNOB_TYPE_COUNTS);
  knobs.resize(std::min(knobs.size(), static_cast<size_t>(knobs_of(knobs))));
  engine->name = format("engine {}{}", index, knobs.empty() ? "" : ", knobs");
  for (const Descriptor knob : knobs) {
    cudnnBackendKnobType_t type{};
    int64_t value = 0;
    made.Get(knob, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, std::span(&type, 1));
    made.Get(knob, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, std::span(&value, 1));
    engine->name += format(" {}={}", static_cast<int>(type), value);
  }
  engine->deterministic =
      !task_.Sums() &&
      std::find(notes.begin(), notes.end(), CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) == notes.end();
  // Kernels that cuDNN compiles cost a second or so whenever they are planned.
  const bool compiles = std::find(behavior.begin(), behavior.end(),
                                  CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) != behavior.end();
  return made.ok() && !compiles && Allowed(notes, task_.options);
}

void CudnnGraph::Take(const Engine& engine) {
  if (engines_.size() == kMostEngines ||
      std::find(names_.begin(), names_.end(), engine.name) != names_.end())
    return;
  engines_.push_back(engine);
  names_.push_back(engine.name);
}

Expected<std::shared_ptr<const CudnnPlan>, Refusal> CudnnGraph::PlanOf(size_t i) const {
  const Engine& engine = engines_[i];
  const std::shared_ptr<CudnnPlan> made(new CudnnPlan(*cudnn_, arrays_));
  CudnnDescriptors& own = made->own_;
  made->from_ = owners_;
  made->deterministic_ = engine.deterministic;
  made->plan_ = own.New(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  own.Set(made->plan_, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR,
          engine.config);
  if (device_.handle)
    own.Set(made->plan_, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, device_.handle);
  if (device_.properties)
    own.Set(made->plan_, kPlanProperties, CUDNN_TYPE_BACKEND_DESCRIPTOR, device_.properties);
  own.Finalize(made->plan_);
  own.Get(made->plan_, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64,
          std::span(&made->workspace_, 1));
  if (!own.ok()) return own.refusal();
  made->unwanted_ = RoundUp(made->workspace_, kGraphAlignment);
  int64_t unwanted = 0;  // bytes
  for (const GraphArray& array : arrays_) {
    if (!array.place) unwanted += SpaceOf(array);
  }
  if (unwanted > 0) made->workspace_ = made->unwanted_ + unwanted;
  if (made->workspace_ > kMostWorkspace)
    return Refusal{format("its workspace is {}", FormatBytes(made->workspace_))};
  return std::shared_ptr<const CudnnPlan>(made);
}

bool GraphArrays::IsAligned() const {
  const void* const all[] = {data,           weight,        out,  bias,    sum,   sums,
                             square_sums,    normalised,    mean, inverse, scale, shift,
                             scale_gradient, shift_gradient};
  static_assert(sizeof(all) == sizeof(GraphArrays));
  return std::none_of(std::begin(all), std::end(all), [](const void* array) {
    return reinterpret_cast<uintptr_t>(array) % kGraphAlignment != 0;
  });
}

cudnnStatus_t CudnnPlan::Run(cudnnHandle_t handle, const GraphArrays& arrays,
                             void* workspace) const {
  std::vector<int64_t> ids;
  std::vector<void*> places;
  auto* unwanted = static_cast<char*>(workspace) + unwanted_;
  for (const GraphArray& array : arrays_) {
    ids.push_back(array.id);
    places.push_back(array.place ? arrays.*array.place : unwanted);
    if (!array.place) unwanted += SpaceOf(array);
  }
  CudnnDescriptors made(cudnn_);
  const Descriptor pack = made.New(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  made.Set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64,
           std::span<const int64_t>(ids));
  made.Set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
           std::span<void* const>(places));
  made.Set(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
  made.Finalize(pack);
  if (!made.ok()) return made.status();
  const MutexLock lock(running_);
  return cudnn_.Execute(handle, plan_, pack);
}

}  // namespace mxtrain::cuda
