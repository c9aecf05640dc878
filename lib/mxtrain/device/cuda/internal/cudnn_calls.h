// SPDX-License-Identifier: Apache-2.0
#pragma once
// cuDNN's calls for convolutions from before graphs (internal/cudnn_graph.h): deprecated, but still
// supported. A part of a convolution is computed by an algorithm, which the library proposes.
#include <cudnn.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/base/format.h"
#include "mxtrain/device/cuda/cudnn_convolution.h"
#include "mxtrain/device/cuda/internal/cudnn_graph.h"

namespace mxtrain::cuda {

inline int Int(int64_t value) {
  return static_cast<int>(value);
}

inline cudnnDataType_t ComputeType(DType type) {
  return type == DType::kFloat64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
}

// The most permissive math that is allowed.
inline cudnnMathType_t MathType(const ConvolutionOptions& options) {
  if (options.type == DType::kFloat64) return CUDNN_DEFAULT_MATH;
  if (options.type == DType::kFloat32)
    return options.math == ConvolutionMath::kTf32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH;
  return CUDNN_TENSOR_OP_MATH;
}

inline void Describe(const ConvolutionShape& s, const ConvolutionOptions& options,
                     const ConvolutionDescriptor& descriptor) {
  MXTRAIN_CHECK_CUDA(cudnnSetConvolution2dDescriptor(
      descriptor.get(), Int(s.pad[0]), Int(s.pad[1]), Int(s.stride[0]), Int(s.stride[1]),
      Int(s.dilate[0]), Int(s.dilate[1]), CUDNN_CROSS_CORRELATION, ComputeType(options.type)));
  MXTRAIN_CHECK_CUDA(cudnnSetConvolutionGroupCount(descriptor.get(), Int(s.groups)));
  MXTRAIN_CHECK_CUDA(cudnnSetConvolutionMathType(descriptor.get(), MathType(options)));
}

// alpha and beta as cuDNN expects them.
class Factors {
 public:
  Factors(DType type, bool add)
      : beta_(add ? 1 : 0), wide_beta_(add ? 1 : 0), wide_(type == DType::kFloat64) {}
  const void* Alpha() const { return wide_ ? static_cast<const void*>(&wide_one_) : &one_; }
  const void* Beta() const { return wide_ ? static_cast<const void*>(&wide_beta_) : &beta_; }

 private:
  float one_ = 1, beta_;
  double wide_one_ = 1, wide_beta_;
  bool wide_;
};

// What a part of a convolution reads, in the order of these calls, and writes.
struct Operands {
  const void *first, *second;
  void* result;
};

// The cuDNN calls for the three parts, and cuDNN's names of their algorithms, by number.
struct ForwardCalls {
  using Result = cudnnConvolutionFwdAlgoPerf_t;
  static constexpr ConvolutionPart kPart = ConvolutionPart::kForward;
  static constexpr const char* kName = "forward";
  static constexpr const char* kAlgorithms[CUDNN_CONVOLUTION_FWD_ALGO_COUNT] = {
      "implicit_gemm", "implicit_precomp_gemm", "gemm", "direct", "fft", "fft_tiling",
      "winograd",      "winograd_nonfused"};

  static cudnnStatus_t Ask(cudnnHandle_t handle, const ConvolutionLayouts& f,
                           const ConvolutionDescriptor& d, int most, int* count, Result* results) {
    return cudnnGetConvolutionForwardAlgorithm_v7(handle, f.data.get(), f.weight.get(), d.get(),
                                                  f.out.get(), most, count, results);
  }
  template <typename Part>
  static cudnnStatus_t AskWorkspace(cudnnHandle_t handle, const ConvolutionLayouts& f,
                                    const Part& part, size_t* bytes) {
    return cudnnGetConvolutionForwardWorkspaceSize(handle, f.data.get(), f.weight.get(),
                                                   part.descriptor.get(), f.out.get(),
                                                   part.algorithm, bytes);
  }
  template <typename Part>
  static cudnnStatus_t Run(cudnnHandle_t handle, const ConvolutionLayouts& f, const Part& part,
                           const Factors& k, const Operands& o, void* workspace) {
    return cudnnConvolutionForward(handle, k.Alpha(), f.data.get(), o.first, f.weight.get(),
                                   o.second, part.descriptor.get(), part.algorithm, workspace,
                                   static_cast<size_t>(part.workspace), k.Beta(), f.out.get(),
                                   o.result);
  }
  static Operands OperandsOf(const GraphArrays& a) { return {a.data, a.weight, a.out}; }
};

struct DataGradientCalls {
  using Result = cudnnConvolutionBwdDataAlgoPerf_t;
  static constexpr ConvolutionPart kPart = ConvolutionPart::kDataGradient;
  static constexpr const char* kName = "gradient of the data";
  static constexpr const char* kAlgorithms[CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT] = {
      "algorithm_0", "algorithm_1", "fft", "fft_tiling", "winograd", "winograd_nonfused"};

  static cudnnStatus_t Ask(cudnnHandle_t handle, const ConvolutionLayouts& f,
                           const ConvolutionDescriptor& d, int most, int* count, Result* results) {
    return cudnnGetConvolutionBackwardDataAlgorithm_v7(handle, f.weight.get(), f.out.get(), d.get(),
                                                       f.data.get(), most, count, results);
  }
  template <typename Part>
  static cudnnStatus_t AskWorkspace(cudnnHandle_t handle, const ConvolutionLayouts& f,
                                    const Part& part, size_t* bytes) {
    return cudnnGetConvolutionBackwardDataWorkspaceSize(handle, f.weight.get(), f.out.get(),
                                                        part.descriptor.get(), f.data.get(),
                                                        part.algorithm, bytes);
  }
  template <typename Part>
  static cudnnStatus_t Run(cudnnHandle_t handle, const ConvolutionLayouts& f, const Part& part,
                           const Factors& k, const Operands& o, void* workspace) {
    return cudnnConvolutionBackwardData(handle, k.Alpha(), f.weight.get(), o.second, f.out.get(),
                                        o.first, part.descriptor.get(), part.algorithm, workspace,
                                        static_cast<size_t>(part.workspace), k.Beta(), f.data.get(),
                                        o.result);
  }
  static Operands OperandsOf(const GraphArrays& a) { return {a.out, a.weight, a.data}; }
};

struct WeightGradientCalls {
  using Result = cudnnConvolutionBwdFilterAlgoPerf_t;
  static constexpr ConvolutionPart kPart = ConvolutionPart::kWeightGradient;
  static constexpr const char* kName = "gradient of the weight";
  static constexpr const char* kAlgorithms[CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT] = {
      "algorithm_0", "algorithm_1",       "fft",       "algorithm_3",
      "winograd",    "winograd_nonfused", "fft_tiling"};

  static cudnnStatus_t Ask(cudnnHandle_t handle, const ConvolutionLayouts& f,
                           const ConvolutionDescriptor& d, int most, int* count, Result* results) {
    return cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle, f.data.get(), f.out.get(), d.get(),
                                                         f.weight.get(), most, count, results);
  }
  template <typename Part>
  static cudnnStatus_t AskWorkspace(cudnnHandle_t handle, const ConvolutionLayouts& f,
                                    const Part& part, size_t* bytes) {
    return cudnnGetConvolutionBackwardFilterWorkspaceSize(handle, f.data.get(), f.out.get(),
                                                          part.descriptor.get(), f.weight.get(),
                                                          part.algorithm, bytes);
  }
  template <typename Part>
  static cudnnStatus_t Run(cudnnHandle_t handle, const ConvolutionLayouts& f, const Part& part,
                           const Factors& k, const Operands& o, void* workspace) {
    return cudnnConvolutionBackwardFilter(handle, k.Alpha(), f.data.get(), o.second, f.out.get(),
                                          o.first, part.descriptor.get(), part.algorithm, workspace,
                                          static_cast<size_t>(part.workspace), k.Beta(),
                                          f.weight.get(), o.result);
  }
  static Operands OperandsOf(const GraphArrays& a) { return {a.out, a.data, a.weight}; }
};

// Errors of the Fourier method depend on the largest element of an image, not of a window.
template <typename Calls>
bool Allowed(const typename Calls::Result& r, const ConvolutionOptions& options) {
  if (r.status != CUDNN_STATUS_SUCCESS ||
      static_cast<int64_t>(r.memory) > CudnnGraph::kMostWorkspace)
    return false;
  const std::string_view algorithm = Calls::kAlgorithms[r.algo];
  if (algorithm.starts_with("fft")) return false;
  if (options.deterministic && r.determinism != CUDNN_DETERMINISTIC) return false;
  if (options.math == ConvolutionMath::kPlain && algorithm.starts_with("winograd")) return false;
  return options.type != DType::kFloat32 || options.math == ConvolutionMath::kTf32 ||
         r.mathType == CUDNN_FMA_MATH || r.mathType == CUDNN_DEFAULT_MATH;
}

inline const char* NameOf(cudnnMathType_t math) {
  switch (math) {
    case CUDNN_DEFAULT_MATH:
      return "default";
    case CUDNN_TENSOR_OP_MATH:
      return "matrix_units";
    case CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION:
      return "matrix_units_converting";
    case CUDNN_FMA_MATH:
      return "fma";
  }
  return "unknown";
}

// The allowed algorithms of a part, in the order of cuDNN's estimates.
template <typename Calls>
struct Candidates {
  std::vector<typename Calls::Result> results;
  std::vector<std::string> names;  // "winograd, fma"

  template <typename Part>
  Candidates(cudnnHandle_t handle, const ConvolutionLayouts& layouts,
             const ConvolutionOptions& options, const Part& part) {
    constexpr int kMost = static_cast<int>(std::size(Calls::kAlgorithms));
    typename Calls::Result found[kMost];
    int count = 0;
    MXTRAIN_CHECK_CUDA(Calls::Ask(handle, layouts, part.descriptor, kMost, &count, found));
    for (typename Calls::Result& r : std::span(found, static_cast<size_t>(count))) {
      if (!Allowed<Calls>(r, options)) continue;
      // Keeps plain float32 arithmetic.
      if (MathType(options) == CUDNN_FMA_MATH) r.mathType = CUDNN_FMA_MATH;
      std::string name = format("{}, {}", Calls::kAlgorithms[r.algo], NameOf(r.mathType));
      if (std::find(names.begin(), names.end(), name) != names.end()) continue;
      results.push_back(r);
      names.push_back(std::move(name));
    }
  }

  // Makes candidate i the algorithm of the part, and queries its workspace.
  template <typename Part>
  cudnnStatus_t Take(size_t i, cudnnHandle_t handle, const ConvolutionLayouts& layouts,
                     Part* part) const {
    part->algorithm = results[i].algo;
    part->deterministic = results[i].determinism == CUDNN_DETERMINISTIC;
    MXTRAIN_CHECK_CUDA(cudnnSetConvolutionMathType(part->descriptor.get(), results[i].mathType));
    size_t bytes = 0;
    const cudnnStatus_t status = Calls::AskWorkspace(handle, layouts, *part, &bytes);
    part->workspace = static_cast<int64_t>(bytes);
    return status;
  }
};

}  // namespace mxtrain::cuda
