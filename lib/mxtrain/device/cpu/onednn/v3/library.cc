// SPDX-License-Identifier: Apache-2.0
// oneDNN 3: primitive descriptors are created in one step, and memory descriptors are opaque:
// created from strides or from a format name, and read by queries.
#include <string_view>

#include <oneapi/dnnl/dnnl_debug.h>

#include "mxtrain/device/cpu/onednn/internal/library.h"

namespace mxtrain::onednn::library {
namespace {

using dnnl::engine;
using dnnl::primitive_attr;
using dnnl::prop_kind;

using Blocks = std::vector<BlockedLayout::Block>;

struct Tag {
  dnnl::memory::format_tag tag;
  int ndim;
  Blocks blocks;
};

// The named blocked formats. The library spells the names as BlockedLayout does ("aBcd8b").
std::vector<Tag> NamedTags() {
  std::vector<Tag> tags;
  for (int i = dnnl_format_tag_any + 1; i < dnnl_format_tag_last; ++i) {
    const std::string_view name = dnnl_fmt_tag2str(static_cast<dnnl_format_tag_t>(i));
    const size_t ndim = name.find_first_of("0123456789");
    if (ndim == std::string_view::npos || ndim > TShape::kMaxDims) continue;
    tags.push_back({static_cast<dnnl::memory::format_tag>(i), static_cast<int>(ndim),
                    BlockedLayout::FromName(name)->blocks()});
  }
  return tags;
}

// Lengths, strides and blocks of a description, ignoring everything else.
Blocking ReadBlocking(const Memory& memory) {
  Blocking blocking{memory.get_dims(), memory.get_padded_dims(), memory.get_strides(), {}};
  const Dims axes = memory.get_inner_idxs(), sizes = memory.get_inner_blks();
  for (size_t i = 0; i < axes.size(); ++i)
    blocking.blocks.push_back({static_cast<int>(axes[i]), sizes[i]});
  return blocking;
}

// Whether both have the same layout: the stride of an axis of one block does not matter.
bool SameMemory(const Blocking& a, const Blocking& b) {
  if (a.dims != b.dims || a.padded != b.padded || a.blocks != b.blocks) return false;
  for (size_t i = 0; i < a.dims.size(); ++i) {
    int64_t block = 1;
    for (const auto& inner : a.blocks) block *= inner.axis == static_cast<int>(i) ? inner.size : 1;
    if (a.padded[i] > block && a.strides[i] != b.strides[i]) return false;
  }
  return true;
}

// The first array of these lengths and blocks that matches. Without blocks there is exactly one, by
// its strides.
template <typename Wanted>
std::optional<Memory> FindMemory(const Blocking& blocking, dnnl::memory::data_type type,
                                 Wanted&& wanted) {
  static const std::vector<Tag> tags = NamedTags();
  if (blocking.blocks.empty()) {
    const Memory memory(blocking.dims, type, blocking.strides);
    return wanted(memory) ? std::optional(memory) : std::nullopt;
  }
  for (const Tag& tag : tags) {
    if (tag.ndim != static_cast<int>(blocking.dims.size()) || tag.blocks != blocking.blocks)
      continue;
    const Memory memory(blocking.dims, type, tag.tag);
    if (wanted(memory)) return memory;
  }
  return std::nullopt;
}

// The library's C++ classes require a forward primitive where none is needed.
template <typename Function, typename... Args>
PrimitiveDesc Create(Function create, const engine& engine, const Args&... args) {
  dnnl_primitive_desc_t pd = nullptr;
  dnnl::error::wrap_c_api(create(&pd, engine.get(), args...),
                          "could not create a primitive descriptor");
  return PrimitiveDesc(pd);
}

constexpr dnnl_alg_kind_t kLocalResponse = dnnl_lrn_across_channels;
const Dims kNoGaps(3, 0);  // of as many spatial axes as there may be

}  // namespace

std::optional<Blocking> BlockingOf(const Memory& memory) {
  if (memory.get_format_kind() != dnnl::memory::format_kind::blocked ||
      memory.get_submemory_offset() != 0)
    return std::nullopt;
  const Blocking blocking = ReadBlocking(memory);
  // Extra flags cannot be queried, but an array with flags never equals one without.
  const bool bare = FindMemory(blocking, memory.get_data_type(), [&](const Memory& m) {
                      return m == memory;
                    }).has_value();
  return bare ? std::optional(blocking) : std::nullopt;
}

Memory MemoryOf(const Blocking& blocking, dnnl::memory::data_type type) {
  const auto lies_so = [&](const Memory& memory) {
    return SameMemory(ReadBlocking(memory), blocking);
  };
  if (std::optional<Memory> memory = FindMemory(blocking, type, lies_so)) return *memory;
  throw dnnl::error(dnnl_invalid_arguments,
                    "oneDNN has no format name for the blocks of this array");
}

void AppendEltwise(dnnl::post_ops& post, dnnl::algorithm algorithm, float alpha, float beta) {
  post.append_eltwise(algorithm, alpha, beta);
}

PrimitiveDesc Forward(const Convolution& c, prop_kind kind, const primitive_attr& attributes,
                      const engine& engine) {
  return Create(dnnl_convolution_forward_primitive_desc_create, engine, dnnl::convert_to_c(kind),
                dnnl::convert_to_c(c.algorithm), c.src.get(), c.weights.get(), c.bias.get(),
                c.dst.get(), c.stride.data(), c.gaps.data(), c.pad_before.data(),
                c.pad_after.data(), attributes.get());
}

PrimitiveDesc BackwardData(const Convolution& c, const primitive_attr& attributes,
                           const engine& engine) {
  return Create(dnnl_convolution_backward_data_primitive_desc_create, engine,
                dnnl::convert_to_c(c.algorithm), c.src.get(), c.weights.get(), c.dst.get(),
                c.stride.data(), c.gaps.data(), c.pad_before.data(), c.pad_after.data(), nullptr,
                attributes.get());
}

PrimitiveDesc BackwardWeights(const Convolution& c, const primitive_attr& attributes,
                              const engine& engine) {
  return Create(dnnl_convolution_backward_weights_primitive_desc_create, engine,
                dnnl::convert_to_c(c.algorithm), c.src.get(), c.weights.get(), c.bias.get(),
                c.dst.get(), c.stride.data(), c.gaps.data(), c.pad_before.data(),
                c.pad_after.data(), nullptr, attributes.get());
}

PrimitiveDesc Forward(const InnerProduct& p, prop_kind kind, const primitive_attr& attributes,
                      const engine& engine) {
  return Create(dnnl_inner_product_forward_primitive_desc_create, engine, dnnl::convert_to_c(kind),
                p.src.get(), p.weights.get(), p.bias.get(), p.dst.get(), attributes.get());
}

PrimitiveDesc BackwardData(const InnerProduct& p, const primitive_attr& attributes,
                           const engine& engine) {
  return Create(dnnl_inner_product_backward_data_primitive_desc_create, engine, p.src.get(),
                p.weights.get(), p.dst.get(), nullptr, attributes.get());
}

PrimitiveDesc BackwardWeights(const InnerProduct& p, const primitive_attr& attributes,
                              const engine& engine) {
  return Create(dnnl_inner_product_backward_weights_primitive_desc_create, engine, p.src.get(),
                p.weights.get(), p.bias.get(), p.dst.get(), nullptr, attributes.get());
}

PrimitiveDesc MatrixProduct(const Memory& src, const Memory& weights, const Memory& dst,
                            const primitive_attr& attributes, const engine& engine) {
  return Create(dnnl_matmul_primitive_desc_create, engine, src.get(), weights.get(), nullptr,
                dst.get(), attributes.get());
}

PrimitiveDesc Forward(const Pooling& p, prop_kind kind, const primitive_attr& attributes,
                      const engine& engine) {
  return Create(dnnl_pooling_forward_primitive_desc_create, engine, dnnl::convert_to_c(kind),
                dnnl::convert_to_c(p.algorithm), p.src.get(), p.dst.get(), p.stride.data(),
                p.kernel.data(), kNoGaps.data(), p.pad_before.data(), p.pad_after.data(),
                attributes.get());
}

PrimitiveDesc Backward(const Pooling& p, const PrimitiveDesc& forward,
                       const primitive_attr& attributes, const engine& engine) {
  return Create(dnnl_pooling_backward_primitive_desc_create, engine,
                dnnl::convert_to_c(p.algorithm), p.src.get(), p.dst.get(), p.stride.data(),
                p.kernel.data(), kNoGaps.data(), p.pad_before.data(), p.pad_after.data(),
                forward.get(), attributes.get());
}

PrimitiveDesc Forward(const LocalResponse& l, const primitive_attr& attributes,
                      const engine& engine) {
  return Create(dnnl_lrn_forward_primitive_desc_create, engine, dnnl_forward_inference,
                kLocalResponse, l.data.get(), l.data.get(), l.size, l.alpha, l.beta, l.k,
                attributes.get());
}

}  // namespace mxtrain::onednn::library
