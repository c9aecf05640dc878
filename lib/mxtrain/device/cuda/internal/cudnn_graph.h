// SPDX-License-Identifier: Apache-2.0
#pragma once
// Convolutions as operation graphs of cuDNN 9, through the functions of its backend. A graph is one
// part of a convolution with what follows it. Heuristics propose engines for it; an engine becomes
// a plan, which runs. What cuDNN does not support is a Refusal, never an exception.
#include <cudnn.h>

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "mxtrain/base/expected.h"
#include "mxtrain/base/mutex.h"
#include "mxtrain/device/convolution_options.h"

namespace mxtrain::cuda {

// cuDNN's functions, named without their prefix. Tests bring their own.
struct CudnnBackend {
  decltype(&cudnnBackendCreateDescriptor) CreateDescriptor = nullptr;
  decltype(&cudnnBackendDestroyDescriptor) DestroyDescriptor = nullptr;
  decltype(&cudnnBackendSetAttribute) SetAttribute = nullptr;
  decltype(&cudnnBackendGetAttribute) GetAttribute = nullptr;
  decltype(&cudnnBackendFinalize) Finalize = nullptr;
  decltype(&cudnnBackendExecute) Execute = nullptr;
  decltype(&cudnnGetErrorString) GetErrorString = nullptr;
};

// Owns descriptors and keeps the first status that is not success; from then on its functions do
// nothing.
class CudnnDescriptors {
 public:
  explicit CudnnDescriptors(const CudnnBackend& cudnn) : cudnn_(cudnn) {}
  ~CudnnDescriptors();  // the last one first
  CudnnDescriptors(const CudnnDescriptors&) = delete;
  CudnnDescriptors& operator=(const CudnnDescriptors&) = delete;

  // Null after a failure.
  cudnnBackendDescriptor_t New(cudnnBackendDescriptorType_t type);
  std::vector<cudnnBackendDescriptor_t> New(cudnnBackendDescriptorType_t type, int64_t count);
  template <typename T>
  void Set(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
           cudnnBackendAttributeType_t type, std::span<const T> values) {
    if (ok())
      status_ = cudnn_.SetAttribute(descriptor, name, type, static_cast<int64_t>(values.size()),
                                    values.data());
  }
  template <typename T>
  void Set(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
           cudnnBackendAttributeType_t type, const T& value) {
    Set(descriptor, name, type, std::span<const T>(&value, 1));
  }
  void Finalize(cudnnBackendDescriptor_t descriptor);
  // Reads at most values.size() elements; returns how many there are, 0 after a failure. For
  // descriptors the values are descriptors, which are filled in.
  template <typename T>
  int64_t Get(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
              cudnnBackendAttributeType_t type, std::span<T> values) {
    int64_t count = 0;
    if (ok())
      status_ =
          cudnn_.GetAttribute(descriptor, name, type, static_cast<int64_t>(values.size()), &count,
                              values.empty() ? nullptr : static_cast<void*>(values.data()));
    return ok() ? count : 0;
  }

  bool ok() const { return status_ == CUDNN_STATUS_SUCCESS; }
  cudnnStatus_t status() const { return status_; }
  Refusal refusal() const { return {cudnn_.GetErrorString(status_)}; }

 private:
  const CudnnBackend& cudnn_;
  std::vector<cudnnBackendDescriptor_t> owned_;
  cudnnStatus_t status_ = CUDNN_STATUS_SUCCESS;
};

enum class ConvolutionPart { kForward, kDataGradient, kWeightGradient };

// What may follow the products in the same graph, if the result is assigned: nothing, as an empty
// epilogue, or one of three.
// - After kForward an epilogue.
// - After kForward the sums of each channel of the result and of their squares.
struct OutputSums {};
// - After kDataGradient, where data = max(0, (normalised - mean) inverse scale + shift): the result
//   is the gradient where ReLU lets it pass, 0 elsewhere. With it come the gradients of the scale,
//   the sum over a channel of result (normalised - mean) inverse, and of the shift, of the result.
struct ReluGate {};
using GraphEnd = std::variant<ConvolutionEpilogue, OutputSums, ReluGate>;

struct GraphTask {
  ConvolutionPart part = ConvolutionPart::kForward;
  ConvolutionShape shape;
  ConvolutionOptions options;
  bool add = false;  // the result is added to what is there
  GraphEnd end;
  bool ProductsOnly() const {
    const auto* epilogue = std::get_if<ConvolutionEpilogue>(&end);
    return epilogue && !epilogue->any();
  }
  // The sums over channels: on an H100 their last bits differ between runs, although cuDNN does not
  // note that of its engines (9.14, 9.19).
  bool Sums() const { return !std::holds_alternative<ConvolutionEpilogue>(end); }
};

// The device that a graph is for: a handle on it; or, to plan without the device, a finalized
// descriptor of its properties (since cuDNN 9.8).
struct GraphDevice {
  cudnnHandle_t handle = nullptr;
  cudnnBackendDescriptor_t properties = nullptr;
};

inline constexpr int64_t kGraphAlignment = 16;  // bytes
// Places of arrays, results among them: of those that a graph has (CudnnGraph::arrays). No two are
// the same.
struct GraphArrays {
  void *data = nullptr, *weight = nullptr, *out = nullptr;
  void *bias = nullptr, *sum = nullptr;          // of the epilogue
  void *sums = nullptr, *square_sums = nullptr;  // [O] in float32, of the outputs
  // Of the gate: [N, C, H, W], and [C] each in float32.
  void* normalised = nullptr;
  void *mean = nullptr, *inverse = nullptr, *scale = nullptr, *shift = nullptr;
  void *scale_gradient = nullptr, *shift_gradient = nullptr;
  bool IsAligned() const;  // as every plan needs them, to kGraphAlignment
};

// An array that a graph has in memory: its id there, and where the caller names its place. Null if
// no caller wants what cuDNN writes there: it lies in the workspace of the plan.
struct GraphArray {
  int64_t id;
  void* GraphArrays::*place;
  int64_t elements;
  DType type;
};

// An engine that will run, on the device that it is for. Any thread may run it.
class CudnnPlan {
 public:
  int64_t workspace() const { return workspace_; }  // bytes
  bool deterministic() const { return deterministic_; }
  cudnnStatus_t Run(cudnnHandle_t handle, const GraphArrays& arrays, void* workspace) const;

 private:
  friend class CudnnGraph;
  CudnnPlan(const CudnnBackend& cudnn, std::vector<GraphArray> arrays)
      : cudnn_(cudnn), arrays_(std::move(arrays)), own_(cudnn) {}

  const CudnnBackend& cudnn_;
  const std::vector<GraphArray> arrays_;
  std::vector<std::shared_ptr<const CudnnDescriptors>> from_;  // what the plan was made from
  CudnnDescriptors own_;
  cudnnBackendDescriptor_t plan_ = nullptr;
  int64_t workspace_ = 0, unwanted_ = 0;  // from `unwanted_` on: arrays that no caller wants
  bool deterministic_ = true;
  mutable Mutex running_;  // cuDNN does not promise that a plan may run in two threads at once
};

class CudnnGraph {
 public:
  static constexpr size_t kMostEngines = 10;
  static constexpr int64_t kMostWorkspace = int64_t{1} << 30;  // bytes

  // With the engines that are part of cuDNN's libraries and compute what the options allow: those
  // that the heuristics A and B propose, by turns; if there are none, and nothing follows the
  // products, those that they fall back to. `cudnn` outlives the graph and its plans.
  static Expected<CudnnGraph, Refusal> Make(const CudnnBackend& cudnn, const GraphDevice& device,
                                            const GraphTask& task);

  // Names of the engines with their settings, at least one, the preferred one first: "engine 62,
  // knobs 2=4 13=0". They mean the same in every process with this version of cuDNN.
  const std::vector<std::string>& engines() const { return names_; }
  const std::vector<GraphArray>& arrays() const { return arrays_; }
  Expected<std::shared_ptr<const CudnnPlan>, Refusal> PlanOf(size_t engine) const;

 private:
  struct Engine {
    cudnnBackendDescriptor_t config;
    std::string name;
    bool deterministic;
  };

  CudnnGraph(const CudnnBackend& cudnn, const GraphDevice& device, const GraphTask& task)
      : cudnn_(&cudnn), device_(device), task_(task) {}
  Expected<cudnnBackendDescriptor_t, Refusal> Build();
  std::vector<Engine> Propose(cudnnBackendDescriptor_t graph, cudnnBackendHeurMode_t mode);
  bool Describe(cudnnBackendDescriptor_t config, Engine* engine) const;
  void Take(const Engine& engine);

  const CudnnBackend* cudnn_;
  GraphDevice device_;
  GraphTask task_;
  std::vector<GraphArray> arrays_;
  std::vector<std::shared_ptr<const CudnnDescriptors>> owners_;
  std::vector<Engine> engines_;
  std::vector<std::string> names_;
};

}  // namespace mxtrain::cuda
