// SPDX-License-Identifier: Apache-2.0
#pragma once
// One interface to oneDNN 2 and 3, which differ. v2/library.cc and v3/library.cc implement it; the
// build uses the one for the version it found, and no other file depends on the version.
#include <optional>
#include <vector>

#include <oneapi/dnnl/dnnl.hpp>

#include "mxtrain/device/blocked_layout.h"

namespace mxtrain::onednn {

using Memory = dnnl::memory::desc;

namespace library {

using Dims = dnnl::memory::dims;
using PrimitiveDesc = dnnl::primitive_desc_base;

// A memory layout. `padded`: axis lengths rounded up to whole blocks; `strides`: of one block along
// each axis, in elements; `blocks` from outermost to innermost.
struct Blocking {
  Dims dims, padded, strides;
  std::vector<BlockedLayout::Block> blocks;
};
// nullopt: the description is not equivalent to a Blocking (an opaque format, compensated weights,
// a part of another array).
std::optional<Blocking> BlockingOf(const Memory& memory);
// Version 3 only creates blocks by name: throws dnnl::error if it has no name for these.
Memory MemoryOf(const Blocking& blocking, dnnl::memory::data_type type);

void AppendEltwise(dnnl::post_ops& post, dnnl::algorithm algorithm, float alpha, float beta);

// The builders throw dnnl::error if the library has no implementation. In backward an array means
// its gradient if the primitive writes that; `bias` is Memory() if there is none.
struct Convolution {
  dnnl::algorithm algorithm;
  Memory src, weights, bias, dst;
  Dims stride, gaps, pad_before, pad_after;  // a dense window has gaps of 0
};
PrimitiveDesc Forward(const Convolution& c, dnnl::prop_kind kind,
                      const dnnl::primitive_attr& attributes, const dnnl::engine& engine);
PrimitiveDesc BackwardData(const Convolution& c, const dnnl::primitive_attr& attributes,
                           const dnnl::engine& engine);
PrimitiveDesc BackwardWeights(const Convolution& c, const dnnl::primitive_attr& attributes,
                              const dnnl::engine& engine);

struct InnerProduct {
  Memory src, weights, bias, dst;
};
PrimitiveDesc Forward(const InnerProduct& p, dnnl::prop_kind kind,
                      const dnnl::primitive_attr& attributes, const dnnl::engine& engine);
PrimitiveDesc BackwardData(const InnerProduct& p, const dnnl::primitive_attr& attributes,
                           const dnnl::engine& engine);
PrimitiveDesc BackwardWeights(const InnerProduct& p, const dnnl::primitive_attr& attributes,
                              const dnnl::engine& engine);

PrimitiveDesc MatrixProduct(const Memory& src, const Memory& weights, const Memory& dst,
                            const dnnl::primitive_attr& attributes, const dnnl::engine& engine);

struct Pooling {
  dnnl::algorithm algorithm;
  Memory src, dst;
  Dims stride, kernel, pad_before, pad_after;
};
PrimitiveDesc Forward(const Pooling& p, dnnl::prop_kind kind,
                      const dnnl::primitive_attr& attributes, const dnnl::engine& engine);
PrimitiveDesc Backward(const Pooling& p, const PrimitiveDesc& forward,
                       const dnnl::primitive_attr& attributes, const dnnl::engine& engine);

// Across channels.
struct LocalResponse {
  Memory data;
  int64_t size;
  float alpha, beta, k;
};
PrimitiveDesc Forward(const LocalResponse& l, const dnnl::primitive_attr& attributes,
                      const dnnl::engine& engine);

}  // namespace library
}  // namespace mxtrain::onednn
