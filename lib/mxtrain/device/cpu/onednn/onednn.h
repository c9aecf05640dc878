// SPDX-License-Identifier: Apache-2.0
#pragma once
// Small owning classes around oneDNN's CPU primitives. No oneDNN type appears here, so differences
// between its versions stay in this folder.
//
// A builder returns a Descriptor, which describes what the library would run and the layouts that
// it chose, or the reason why it has nothing. Plans are made from Descriptors. Descriptor::Make()
// generates the code. All primitives sum in float32 and take their scratch memory from the caller
// (Arg::kScratchpad, scratchpad_bytes()). Per-channel values (bias, statistics, scale, shift) are
// float32 for data of either type.
//
// Descriptors are immutable and safe from every thread. A Primitive stores the pointers of its last
// run: one thread at a time. Builders and Make() first enter the thread into the backend's team,
// since oneDNN divides work by the current team size.
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "mxtrain/base/error.h"
#include "mxtrain/base/expected.h"
#include "mxtrain/device/backend.h"
#include "mxtrain/device/matrix_view.h"

namespace mxtrain::onednn {

// An array as a primitive sees it. `layout` nullopt: the primitive chooses. `type` is float32 or
// bfloat16.
struct Array {
  TShape shape;
  std::optional<Layout> layout;
  DType type = DType::kFloat32;
};

// Whether primitives here support arrays of this type: float32 always, bfloat16 if WhyNoBfloat16
// returns "". Returns "" if they do, else the reason.
MXTRAIN_API std::string WhyNotType(DType type);

enum class Arg : int {
  kSrc,
  kDst,
  kWeights,
  kBias,
  kWorkspace,
  kScratchpad,
  kDiffSrc,
  kDiffDst,
  kDiffWeights,
  kDiffBias,
};

struct Binding {
  Arg arg;
  void* data;  // may be null for an array without bytes
};

class MXTRAIN_API Primitive {
 public:
  virtual ~Primitive() = default;
  // Runs on the calling thread's team and returns when the work is done. Every argument of the
  // primitive must be bound; others are ignored. Throws kBug with oneDNN's status.
  virtual void Execute(std::span<const Binding> bindings) = 0;
  void Execute(std::initializer_list<Binding> bindings) {
    Execute(std::span(bindings.begin(), bindings.size()));
  }
};

// Quality of an implementation: generated for the layout; a matrix product after a rearrangement;
// loops over elements (slower by orders of magnitude).
enum class Speed : int { kDirect, kGemm, kReference };

class MXTRAIN_API Descriptor {
 public:
  struct Impl;  // internal.h
  explicit Descriptor(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

  // The layout of an argument; one that the caller fixed is returned unchanged.
  Layout LayoutOf(Arg arg) const;
  int64_t scratchpad_bytes() const;
  int64_t workspace_bytes() const;  // written by a forward primitive for its backward (kWorkspace)
  Speed speed() const;
  std::unique_ptr<Primitive> Make() const;

 private:
  std::shared_ptr<const Impl> impl_;
};
using Result = Expected<Descriptor, Refusal>;

// Clamping of results: none, from 0 on, or between 0 and a number.
struct Bounds {
  float low = -std::numeric_limits<float>::infinity(),
        high = std::numeric_limits<float>::infinity();
};

// Convolution with one to three spatial axes, NC... shapes; weights [O, I/groups, k...]. Dilation 1
// is dense, as for the operators. One struct describes all three primitives: `src`, `weights` and
// `dst` mean their gradients if the primitive writes those.
struct Convolution {
  Array src, weights, dst;
  TShape stride, dilate, pad;  // an entry per spatial axis
  TShape pad_after = {};       // after the data, if not as before them
  int64_t groups = 1;
  bool bias = false;  // bias and its gradient are plain [O]
  bool training = true;
  bool accumulate = false;  // forward: dst += convolution
  Bounds bounds;            // forward: of dst, after accumulation
  // Computes the gradient of the weights by Winograd's F(4x4, 3x3) if oneDNN has it and estimates
  // it to be faster. Its rounding errors are 0.5 to 2.7 times those of the direct kernel (root mean
  // square, 64 to 512 channels); in forward and for the data they would be 4 to 8 times as large.
  bool winograd_weights = false;
};
// kSrc kWeights kBias -> kDst.
MXTRAIN_API Result ConvolutionForward(Backend& backend, const Convolution& c);
// kDiffDst kWeights -> kDiffSrc.
MXTRAIN_API Result ConvolutionBackwardData(Backend& backend, const Convolution& c);
// kSrc kDiffDst -> kDiffWeights kDiffBias.
MXTRAIN_API Result ConvolutionBackwardWeights(Backend& backend, const Convolution& c);

// dst = src weights^T + bias; src [N, I], weights [O, I], dst [N, O].
struct InnerProduct {
  Array src, weights, dst;
  bool bias = false;
  bool training = true;
  bool accumulate = false;
  Bounds bounds;
};
MXTRAIN_API Result InnerProductForward(Backend& backend, const InnerProduct& p);
MXTRAIN_API Result InnerProductBackwardData(Backend& backend, const InnerProduct& p);
MXTRAIN_API Result InnerProductBackwardWeights(Backend& backend, const InnerProduct& p);

// dst = src weights, or += : one product for each matrix of the batch. The rows or the columns of
// every matrix are contiguous, the rows of dst are.
struct MatrixProduct {
  MatrixView src, weights, dst;
  DType type = DType::kFloat32;
  bool accumulate = false;
  DType dst_type =
      DType::kUnknown;  // kUnknown: `type`; float32: bfloat16 factors, sums as they are
};
MXTRAIN_API Result Multiply(Backend& backend, const MatrixProduct& p);  // kSrc kWeights -> kDst

// Averages over windows.
struct Pooling {
  Array src, dst;            // one to three spatial axes after [N, C]
  bool with_padding = true;  // whether padding counts in the divisor
  TShape kernel, stride, pad_before, pad_after;
  bool training = true;
};
MXTRAIN_API Result PoolingForward(Backend& backend, const Pooling& p);   // kSrc -> kDst
MXTRAIN_API Result PoolingBackward(Backend& backend, const Pooling& p);  // kDiffDst -> kDiffSrc

// Across channels, without a backward pass: dst = src (k + alpha / size * sum of squares over
// `size` channels)^-beta.
struct LocalResponse {
  Array data;
  int64_t size = 5;
  float alpha = 1e-4f, beta = 0.75f, k = 2;
};
MXTRAIN_API Result LocalResponseForward(Backend& backend, const LocalResponse& l);  // kSrc -> kDst

}  // namespace mxtrain::onednn
