// SPDX-License-Identifier: Apache-2.0
#pragma once
// The windows of convolutions and poolings. Private to onnx.
#include <string>
#include <vector>

#include "mxtrain/onnx/internal/import_node.h"

namespace mxtrain::onnx {

// The windows of a convolution or pooling over sequences, images or volumes.
struct Windows {
  std::vector<int64_t> kernel, stride, dilation;
  std::vector<int64_t> begin, end;  // padding

  size_t axes() const { return kernel.size(); }
  bool symmetric() const { return begin == end; }
  // Cells of an axis of the images that a window spans.
  int64_t Span(size_t axis) const { return dilation[axis] * (kernel[axis] - 1) + 1; }
};

// Of the axis behind the channels.
int64_t LengthOf(const ImportNode& node, size_t axis);
// From the attributes; throws kConfig and kData for what does not describe windows over the data.
// `automatic`: auto_pad is followed (a transposed convolution reads it otherwise).
Windows WindowsOf(const ImportNode& node, std::vector<int64_t> kernel, bool automatic = true);
// The data with the padding added, which is then none.
std::string Padded(ImportNode& node, Windows* w, double value);

}  // namespace mxtrain::onnx
