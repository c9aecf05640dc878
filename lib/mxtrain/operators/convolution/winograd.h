// SPDX-License-Identifier: Apache-2.0
#pragma once
// Winograd convolution over whole arrays by the loops of winograd_kernels.h, on the calling
// thread's team: the forward pass and, with channels and filters exchanged, the gradient of the
// data. One group, 3x3 windows, stride 1, padding of at most two.
#include <memory>
#include <string>

#include "mxtrain/device/derived_layout.h"
#include "mxtrain/operators/convolution/convolution.h"
#include "mxtrain/operators/convolution/winograd_kernels.h"

namespace mxtrain::winograd {

// Why these loops do not support a convolution, or "".
std::string WhyNot(const ConvolutionGeometry& geometry);

// Layouts of images ("aBcd16b"), of weights packed at each use ("ABcd16b16a"), and of prepacked
// weights.
std::unique_ptr<LayoutDesc> ImageLayout();
std::unique_ptr<LayoutDesc> WeightLayout();
std::unique_ptr<LayoutDesc> PackedLayout();

// One pass for given shapes, forward or `turned` (the gradient of the data): its memory needs and
// the division of work. Immutable.
class Pass {
 public:
  Pass(const ConvolutionGeometry& geometry, bool turned, int threads);

  int64_t packed_bytes() const;
  int64_t workspace_bytes() const;  // without the packed weights

  // Packs weights in WeightLayout().
  void Pack(const float* weights, float* packed) const;
  // Padded channels become zero, as the padding of `packed` requires.
  void Run(const float* source, const float* packed, float* out, const Ending& ending,
           void* workspace) const;

  // Modelled time in nanoseconds of one core, with or without packing, and that of a direct kernel.
  double Cost(bool pack) const;
  double DirectCost() const;

 private:
  int64_t batch_, channels_, filters_, in_[2], out_[2], pad_[2], rows_, columns_;
  bool turned_;
  // Tiles are processed in pieces: each thread has its own piece and arrays, or, if there are too
  // few tiles, the whole team shares each piece.
  bool team_;
  int64_t pieces_, capacity_, slabs_;
};

}  // namespace mxtrain::winograd
