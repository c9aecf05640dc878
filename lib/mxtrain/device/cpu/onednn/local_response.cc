#include "mxtrain/device/cpu/onednn/internal.h"

namespace mxtrain::onednn {
namespace {

constexpr dnnl::algorithm kAlgorithm = dnnl::algorithm::lrn_across_channels;

dnnl::lrn_forward::primitive_desc ForwardOf(const LocalResponse& l, const dnnl::engine& engine) {
  const dnnl::prop_kind kind = l.training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
  return {{kind, kAlgorithm, MemoryOf(l.data), l.size, l.alpha, l.beta, l.k}, Attributes(), engine};
}

}  // namespace

Result LocalResponseForward(Backend& backend, const LocalResponse& l) {
  return Build(backend, [&](const dnnl::engine& engine) {
    return Describe(backend, engine, ForwardOf(l, engine), std::vector<ArrayArg>{{Arg::kSrc, l.data}, {Arg::kDst, l.data}});
  });
}

Result LocalResponseBackward(Backend& backend, const LocalResponse& l) {
  return Build(backend, [&](const dnnl::engine& engine) {
    const Memory memory = MemoryOf(l.data);
    const dnnl::lrn_backward::desc desc(kAlgorithm, memory, memory, l.size, l.alpha, l.beta, l.k);
    return Describe(backend, engine, dnnl::lrn_backward::primitive_desc(desc, Attributes(), engine, ForwardOf(l, engine)),
                    std::vector<ArrayArg>{{Arg::kSrc, l.data}, {Arg::kDiffDst, l.data}, {Arg::kDiffSrc, l.data}});
  });
}

}  // namespace mxtrain::onednn
