// SPDX-License-Identifier: Apache-2.0
#pragma once
// 2-D convolutions by cuDNN. Algorithms are chosen when the object is created and do not change.
#include <algorithm>
#include <memory>

#include "mxtrain/device/cuda/cudnn_descriptors.h"
#include "mxtrain/device/cuda/stream.h"
#include "mxtrain/device/kernel_choices.h"

namespace mxtrain::cuda {

// Numbers of a 2-D cross-correlation; arrays of two are (h, w).
struct ConvolutionShape {
  int64_t batch, in_channels, out_channels, groups;
  int64_t in[2], out[2], kernel[2], stride[2], dilate[2], pad[2];
};

// kPlain: float32 sums of products, in any order. kWinograd: also Winograd's method. kTf32: also
// float32 factors rounded to 10 bits of fraction.
enum class ConvolutionMath { kTf32, kWinograd, kPlain };

struct ConvolutionOptions {
  DType type = DType::kFloat32;
  ConvolutionMath math = ConvolutionMath::kPlain;
  // Only algorithms whose results repeat bit for bit, and no measuring, whose outcome may vary.
  bool deterministic = false;
  bool channels_last = false;  // data, weight and output
  // The parts that will be called.
  bool forward = true, data_gradient = false, weight_gradient = false;
};

// The arrays as cuDNN descriptors.
struct ConvolutionLayouts {
  TensorDescriptor data, out;
  FilterDescriptor weight;
};

class CudnnConvolution {
 public:
  // Null if cuDNN does not support the options. Algorithms come from the backend's kernel choices
  // (ChoicesOf). Missing ones are measured on arrays that the backend lends; if measuring is not
  // allowed or memory is short, cuDNN's own model of the device decides. Throws kDevice. Safe from
  // every thread; so are the functions below for different streams.
  static std::shared_ptr<const CudnnConvolution> Make(Backend& backend, int device,
                                                      const ConvolutionShape& shape,
                                                      const ConvolutionOptions& options);

  int64_t forward_workspace() const { return forward_.workspace; }
  int64_t backward_workspace() const { return std::max(data_.workspace, weight_.workspace); }
  bool deterministic() const {
    return forward_.deterministic && data_.deterministic && weight_.deterministic;
  }

  // Arrays [N, C, H, W]; weight [O, C / groups, kh, kw]; all plain, or all channels last. The
  // result is assigned or accumulated.
  void Forward(CudaStream& stream, const void* data, const void* weight, void* out, bool add,
               void* workspace) const;
  void DataGradient(CudaStream& stream, const void* head, const void* weight, void* out, bool add,
                    void* workspace) const;
  void WeightGradient(CudaStream& stream, const void* head, const void* data, void* out, bool add,
                      void* workspace) const;

 private:
  // One of the three parts: its algorithm, and a descriptor with the math type for it.
  template <typename Algorithm>
  struct Part {
    ConvolutionDescriptor descriptor;
    Algorithm algorithm{};
    int64_t workspace = 0;  // bytes
    bool deterministic = true;
  };

  CudnnConvolution(const ConvolutionShape& shape, const ConvolutionOptions& options);

  DType type_;
  ConvolutionLayouts layouts_;
  Part<cudnnConvolutionFwdAlgo_t> forward_;
  Part<cudnnConvolutionBwdDataAlgo_t> data_;
  Part<cudnnConvolutionBwdFilterAlgo_t> weight_;
};

}  // namespace mxtrain::cuda
