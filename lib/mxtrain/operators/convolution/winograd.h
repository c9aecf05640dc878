#pragma once
// Winograd's convolution over whole arrays by the loops of winograd_kernels.h, on the calling thread's team: the forward pass and, with the
// roles of channels and filters exchanged, the gradient of the data. One group, windows of 3x3 at every cell, padding of at most two.
#include <memory>
#include <string>

#include "mxtrain/device/derived_layout.h"
#include "mxtrain/operators/convolution/convolution.h"
#include "mxtrain/operators/convolution/winograd_kernels.h"

namespace mxtrain::winograd {

// Why these loops cannot run a convolution, or "".
std::string WhyNot(const ConvolutionGeometry& geometry);

// How images lie ("aBcd16b"); how weights lie that are packed at each use ("ABcd16b16a"), and those that were packed once.
std::unique_ptr<LayoutDesc> ImageLayout();
std::unique_ptr<LayoutDesc> WeightLayout();
std::unique_ptr<LayoutDesc> PackedLayout();

// One pass of given shapes, forward or `turned` (the gradient of the data): what it needs and how its work is divided. Immutable.
class Pass {
 public:
  Pass(const ConvolutionGeometry& geometry, bool turned, int threads);

  int64_t packed_bytes() const;
  int64_t workspace_bytes() const;  // beside the packed weights

  // Packs weights that lie as WeightLayout().
  void Pack(const float* weights, float* packed) const;
  // Padded channels become what the padding of `packed` says: zero.
  void Run(const float* source, const float* packed, float* out, const Ending& ending, void* workspace) const;

  // Nanoseconds of one core by a model, with or without packing, and those of a direct kernel.
  double Cost(bool pack) const;
  double DirectCost() const;

 private:
  int64_t batch_, channels_, filters_, in_[2], out_[2], pad_[2], rows_, columns_;
  bool turned_;
  // Tiles are worked on in pieces: a thread by itself on each, with arrays of its own, or, where there are too few tiles for that, the
  // whole team on each.
  bool team_;
  int64_t pieces_, capacity_, slabs_;
};

}  // namespace mxtrain::winograd
