// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/cpu/onednn/internal/call.h"

namespace mxtrain::onednn {
namespace {

library::LocalResponse LibraryOf(const LocalResponse& l) {
  return {MemoryOf(l.data), l.size, l.alpha, l.beta, l.k};
}

library::PrimitiveDesc ForwardOf(const LocalResponse& l, const dnnl::engine& engine) {
  const dnnl::prop_kind kind =
      l.training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
  return library::Forward(LibraryOf(l), kind, Attributes(), engine);
}

}  // namespace

Result LocalResponseForward(Backend& backend, const LocalResponse& l) {
  return Build(backend, [&](const dnnl::engine& engine) {
    return Describe(backend, engine, ForwardOf(l, engine),
                    std::vector<ArrayArg>{{Arg::kSrc, l.data}, {Arg::kDst, l.data}});
  });
}

Result LocalResponseBackward(Backend& backend, const LocalResponse& l) {
  return Build(backend, [&](const dnnl::engine& engine) {
    return Describe(backend, engine,
                    library::Backward(LibraryOf(l), ForwardOf(l, engine), Attributes(), engine),
                    std::vector<ArrayArg>{
                        {Arg::kSrc, l.data}, {Arg::kDiffDst, l.data}, {Arg::kDiffSrc, l.data}});
  });
}

}  // namespace mxtrain::onednn
