// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/cpu/onednn/internal/call.h"

namespace mxtrain::onednn {
namespace {

library::Pooling LibraryOf(const Pooling& p) {
  const auto algorithm = p.with_padding ? dnnl::algorithm::pooling_avg_include_padding
                                        : dnnl::algorithm::pooling_avg_exclude_padding;
  return {algorithm,        MemoryOf(p.src),      MemoryOf(p.dst),    DimsOf(p.stride),
          DimsOf(p.kernel), DimsOf(p.pad_before), DimsOf(p.pad_after)};
}

library::PrimitiveDesc ForwardOf(const Pooling& p, const dnnl::engine& engine) {
  const dnnl::prop_kind kind =
      p.training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
  return library::Forward(LibraryOf(p), kind, Attributes(), engine);
}

}  // namespace

Result PoolingForward(Backend& backend, const Pooling& p) {
  return Build(backend, [&](const dnnl::engine& engine) {
    return Describe(backend, engine, ForwardOf(p, engine),
                    std::vector<ArrayArg>{{Arg::kSrc, p.src}, {Arg::kDst, p.dst}});
  });
}

Result PoolingBackward(Backend& backend, const Pooling& p) {
  return Build(backend, [&](const dnnl::engine& engine) {
    return Describe(backend, engine,
                    library::Backward(LibraryOf(p), ForwardOf(p, engine), Attributes(), engine),
                    std::vector<ArrayArg>{{Arg::kDiffSrc, p.src}, {Arg::kDiffDst, p.dst}});
  });
}

}  // namespace mxtrain::onednn
