// SPDX-License-Identifier: Apache-2.0
// oneDNN 2: an operation descriptor precedes the primitive descriptor, and a memory descriptor is a
// public structure.
#include <algorithm>

#include "mxtrain/device/cpu/onednn/internal/library.h"

namespace mxtrain::onednn::library {
namespace {

using dnnl::algorithm;
using dnnl::engine;
using dnnl::primitive_attr;
using dnnl::prop_kind;

// The library's C++ classes require a forward primitive where none is needed.
template <typename Desc>
PrimitiveDesc Create(const Desc& desc, const primitive_attr& attributes, const engine& engine,
                     const PrimitiveDesc* forward = nullptr) {
  return dnnl::primitive_desc(&desc.data, &attributes, engine, forward ? forward->get() : nullptr);
}

constexpr algorithm kLocalResponse = algorithm::lrn_across_channels;

}  // namespace

std::optional<Blocking> BlockingOf(const Memory& memory) {
  const dnnl_memory_desc_t& md = memory.data;
  if (md.format_kind != dnnl_blocked || md.extra.flags != 0 || md.offset0 != 0) return std::nullopt;
  const dnnl_blocking_desc_t& inner = md.format_desc.blocking;
  Blocking blocking{{md.dims, md.dims + md.ndims},
                    {md.padded_dims, md.padded_dims + md.ndims},
                    {inner.strides, inner.strides + md.ndims},
                    {}};
  for (int i = 0; i < inner.inner_nblks; ++i)
    blocking.blocks.push_back({static_cast<int>(inner.inner_idxs[i]), inner.inner_blks[i]});
  return blocking;
}

Memory MemoryOf(const Blocking& blocking, dnnl::memory::data_type type) {
  Memory memory(blocking.dims, type, Dims(blocking.dims.size(), 0));
  dnnl_memory_desc_t& md = memory.data;
  std::copy(blocking.padded.begin(), blocking.padded.end(), md.padded_dims);
  dnnl_blocking_desc_t& inner = md.format_desc.blocking;
  std::copy(blocking.strides.begin(), blocking.strides.end(), inner.strides);
  inner.inner_nblks = static_cast<int>(blocking.blocks.size());
  for (size_t i = 0; i < blocking.blocks.size(); ++i) {
    inner.inner_idxs[i] = blocking.blocks[i].axis;
    inner.inner_blks[i] = blocking.blocks[i].size;
  }
  return memory;
}

void AppendEltwise(dnnl::post_ops& post, algorithm algorithm, float alpha, float beta) {
  post.append_eltwise(1.0f, algorithm, alpha, beta);
}

PrimitiveDesc Forward(const Convolution& c, prop_kind kind, const primitive_attr& attributes,
                      const engine& engine) {
  return Create(dnnl::convolution_forward::desc(kind, c.algorithm, c.src, c.weights, c.bias, c.dst,
                                                c.stride, c.gaps, c.pad_before, c.pad_after),
                attributes, engine);
}

PrimitiveDesc BackwardData(const Convolution& c, const primitive_attr& attributes,
                           const engine& engine) {
  return Create(dnnl::convolution_backward_data::desc(c.algorithm, c.src, c.weights, c.dst,
                                                      c.stride, c.gaps, c.pad_before, c.pad_after),
                attributes, engine);
}

PrimitiveDesc BackwardWeights(const Convolution& c, const primitive_attr& attributes,
                              const engine& engine) {
  return Create(
      dnnl::convolution_backward_weights::desc(c.algorithm, c.src, c.weights, c.bias, c.dst,
                                               c.stride, c.gaps, c.pad_before, c.pad_after),
      attributes, engine);
}

PrimitiveDesc Forward(const InnerProduct& p, prop_kind kind, const primitive_attr& attributes,
                      const engine& engine) {
  return Create(dnnl::inner_product_forward::desc(kind, p.src, p.weights, p.bias, p.dst),
                attributes, engine);
}

PrimitiveDesc BackwardData(const InnerProduct& p, const primitive_attr& attributes,
                           const engine& engine) {
  return Create(dnnl::inner_product_backward_data::desc(p.src, p.weights, p.dst), attributes,
                engine);
}

PrimitiveDesc BackwardWeights(const InnerProduct& p, const primitive_attr& attributes,
                              const engine& engine) {
  return Create(dnnl::inner_product_backward_weights::desc(p.src, p.weights, p.bias, p.dst),
                attributes, engine);
}

PrimitiveDesc MatrixProduct(const Memory& src, const Memory& weights, const Memory& dst,
                            const primitive_attr& attributes, const engine& engine) {
  return Create(dnnl::matmul::desc(src, weights, dst), attributes, engine);
}

PrimitiveDesc Forward(const Pooling& p, prop_kind kind, const primitive_attr& attributes,
                      const engine& engine) {
  return Create(dnnl::pooling_forward::desc(kind, p.algorithm, p.src, p.dst, p.stride, p.kernel,
                                            p.pad_before, p.pad_after),
                attributes, engine);
}

PrimitiveDesc Backward(const Pooling& p, const PrimitiveDesc& forward,
                       const primitive_attr& attributes, const engine& engine) {
  return Create(dnnl::pooling_backward::desc(p.algorithm, p.src, p.dst, p.stride, p.kernel,
                                             p.pad_before, p.pad_after),
                attributes, engine, &forward);
}

PrimitiveDesc Forward(const LocalResponse& l, const primitive_attr& attributes,
                      const engine& engine) {
  return Create(dnnl::lrn_forward::desc(prop_kind::forward_inference, kLocalResponse, l.data,
                                        l.size, l.alpha, l.beta, l.k),
                attributes, engine);
}

}  // namespace mxtrain::onednn::library
