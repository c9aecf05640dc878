// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a library such as cuDNN is told of a 2-D convolution.
#include <cstdint>

#include "mxtrain/base/dtype.h"

namespace mxtrain {

// Numbers of a 2-D cross-correlation; arrays of two are (h, w).
struct ConvolutionShape {
  int64_t batch, in_channels, out_channels, groups;
  int64_t in[2], out[2], kernel[2], stride[2], dilate[2], pad[2];
};

// kPlain: float32 sums of products, in any order. kWinograd: also Winograd's method. kTf32: also
// float32 factors rounded to 10 bits of fraction.
enum class ConvolutionMath { kTf32, kWinograd, kPlain };

// What follows the products before they are rounded to the type of the output:
// max(0, products [+ sum] [+ bias]).
struct ConvolutionEpilogue {
  bool sum = false;  // an array like the output
  bool bias = false;
  DType bias_type = DType::kFloat32;
  bool relu = false;
  bool any() const { return sum || bias || relu; }
};

struct ConvolutionOptions {
  DType type = DType::kFloat32;
  ConvolutionMath math = ConvolutionMath::kPlain;
  // Only algorithms whose results repeat bit for bit, and no measuring, whose outcome may vary.
  bool deterministic = false;
  bool channels_last = false;  // data, weight and output
  // The parts that will be called.
  bool forward = true, data_gradient = false, weight_gradient = false;
  // Whether a part adds to its result instead of assigning it: forward as a rule, a gradient
  // always.
  bool forward_adds = false, data_gradient_adds = false, weight_gradient_adds = false;
  // Wanted of the forward part in one kernel: an epilogue; or, of products alone that are assigned,
  // the sums of each channel and of their squares too.
  ConvolutionEpilogue epilogue;
  bool sums = false;
  // The data are ReLU of a normalised array. Wanted of the data gradient, assigned, in one kernel:
  // ReLU's gradient and those of scale and shift too.
  bool gated = false;
};

}  // namespace mxtrain
