// SPDX-License-Identifier: Apache-2.0
#pragma once
// 2-D convolutions by cuDNN. Engines of its graph interface, or algorithms of the calls from before
// it, are chosen when the object is created and do not change.
#include <algorithm>
#include <array>
#include <memory>

#include "mxtrain/device/convolution_options.h"
#include "mxtrain/device/cuda/cudnn_descriptors.h"
#include "mxtrain/device/cuda/stream.h"
#include "mxtrain/device/kernel_choices.h"

namespace mxtrain::cuda {

class CudnnPlan;  // internal/cudnn_graph.h

// The arrays as cuDNN descriptors.
struct ConvolutionLayouts {
  TensorDescriptor data, out;
  FilterDescriptor weight;
};

class CudnnConvolution {
 public:
  static constexpr const char* kName = "cuDNN";
  static constexpr int64_t kAlignment = 256;  // bytes, of every workspace

  // What the data of a convolution are ReLU of: an array [N, C, H, W] of its type and what
  // normalises that, [C] each: max(0, (data - mean) inverse scale + shift).
  struct Normalisation {
    const void* data;
    const float *mean, *inverse, *scale, *shift;
  };

  // Null if cuDNN does not support the options, an epilogue excepted. Engines and algorithms come
  // from the backend's kernel choices (ChoicesOf). Missing ones are measured on arrays that the
  // backend lends; if measuring is not allowed or memory is short, cuDNN's own model of the device
  // decides. Throws kDevice. Safe from every thread; so are the functions below for different
  // streams.
  static std::shared_ptr<const CudnnConvolution> Make(Backend& backend, int device,
                                                      const ConvolutionShape& shape,
                                                      const ConvolutionOptions& options);

  int64_t forward_workspace() const;
  int64_t backward_workspace() const;
  bool deterministic() const;
  // Whether the epilogue of the options is one kernel with the products.
  bool fused() const { return fused_ != nullptr; }
  // Whether the sums of the options come from one kernel with the products.
  bool sums() const { return sums_ != nullptr; }
  // Whether the data gradient comes with ReLU's and normalisation's part, as the options want.
  bool gated() const { return gated_ != nullptr; }

  // Arrays [N, C, H, W]; weight [O, C / groups, kh, kw]; all plain, or all channels last. The
  // result is assigned or accumulated; a gradient as the options say. Slower if an array, such as a
  // slice, is not aligned to 16 bytes.
  void Forward(RunContext ctx, const void* data, const void* weight, void* out, bool add,
               void* workspace) const;
  // With the epilogue, only if fused(). `bias` and `sum` are null where it has none; the result is
  // assigned. No array is another one. False, with nothing done, if one is not aligned.
  bool ForwardFused(RunContext ctx, const void* data, const void* weight, const void* bias,
                    const void* sum, void* out, void* workspace) const;
  // As Forward, assigned, and into `sums` [2, O] the sum of each channel's outputs, then of their
  // squares, before or after they are rounded to their type. Only if sums(). No array is another
  // one. False, with nothing done, if one is not aligned.
  bool ForwardSums(RunContext ctx, const void* data, const void* weight, void* out, float* sums,
                   void* workspace) const;
  void DataGradient(RunContext ctx, const void* head, const void* weight, void* out, bool add,
                    void* workspace) const;
  // As DataGradient, assigned where ReLU lets it pass, 0 elsewhere; and the gradients of scale and
  // shift [C]. Only if gated(). No array is another one. False, with nothing done, if one is not
  // aligned.
  bool DataGradientGated(RunContext ctx, const void* head, const void* weight,
                         const Normalisation& normalisation, void* gradient, float* scale_gradient,
                         float* shift_gradient, void* workspace) const;
  void WeightGradient(RunContext ctx, const void* head, const void* data, void* out, bool add,
                      void* workspace) const;

 private:
  // One of the three parts: its plans, or its algorithm and a descriptor with the math type for it.
  template <typename Algorithm>
  struct Part {
    // For a result that is assigned and for one that is accumulated; null where it is not needed.
    // Both null: by the algorithm.
    std::array<std::shared_ptr<const CudnnPlan>, 2> plans;
    ConvolutionDescriptor descriptor;
    Algorithm algorithm{};
    bool stands_in = false;  // the algorithm, for arrays that the plans do not take
    int64_t workspace = 0;   // bytes
    bool deterministic = true;
  };

  CudnnConvolution(const ConvolutionShape& shape, const ConvolutionOptions& options);

  DType type_;
  int64_t out_channels_;
  ConvolutionLayouts layouts_;
  std::shared_ptr<const CudnnPlan> fused_, sums_, gated_;
  Part<cudnnConvolutionFwdAlgo_t> forward_;
  Part<cudnnConvolutionBwdDataAlgo_t> data_;
  Part<cudnnConvolutionBwdFilterAlgo_t> weight_;
};

}  // namespace mxtrain::cuda
