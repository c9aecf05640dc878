#include "mxtrain/device/cpu/onednn/internal.h"

namespace mxtrain::onednn {
namespace {

dnnl::algorithm AlgorithmOf(Pooling::Kind kind) {
  switch (kind) {
    case Pooling::kMax:
      return dnnl::algorithm::pooling_max;
    case Pooling::kAverageWithPadding:
      return dnnl::algorithm::pooling_avg_include_padding;
    default:
      return dnnl::algorithm::pooling_avg_exclude_padding;
  }
}

dnnl::pooling_forward::primitive_desc ForwardOf(const Pooling& p, const dnnl::engine& engine) {
  const dnnl::pooling_forward::desc desc(p.training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference,
                                         AlgorithmOf(p.kind), MemoryOf(p.src), MemoryOf(p.dst), DimsOf(p.stride), DimsOf(p.kernel),
                                         DimsOf(p.pad_before), DimsOf(p.pad_after));
  return {desc, Attributes(), engine};
}

}  // namespace

Result PoolingForward(Backend& backend, const Pooling& p) {
  return Build(backend, [&](const dnnl::engine& engine) {
    return Describe(backend, engine, ForwardOf(p, engine), std::vector<ArrayArg>{{Arg::kSrc, p.src}, {Arg::kDst, p.dst}});
  });
}

Result PoolingBackward(Backend& backend, const Pooling& p) {
  return Build(backend, [&](const dnnl::engine& engine) {
    const dnnl::pooling_backward::desc desc(AlgorithmOf(p.kind), MemoryOf(p.src), MemoryOf(p.dst), DimsOf(p.stride), DimsOf(p.kernel),
                                            DimsOf(p.pad_before), DimsOf(p.pad_after));
    return Describe(backend, engine, dnnl::pooling_backward::primitive_desc(desc, Attributes(), engine, ForwardOf(p, engine)),
                    std::vector<ArrayArg>{{Arg::kDiffSrc, p.src}, {Arg::kDiffDst, p.dst}});
  });
}

}  // namespace mxtrain::onednn
