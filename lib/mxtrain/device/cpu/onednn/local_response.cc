// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/cpu/onednn/internal/call.h"

namespace mxtrain::onednn {
namespace {

library::LocalResponse LibraryOf(const LocalResponse& l) {
  return {MemoryOf(l.data), l.size, l.alpha, l.beta, l.k};
}

}  // namespace

Result LocalResponseForward(Backend& backend, const LocalResponse& l) {
  return Build(backend, [&](const dnnl::engine& engine) {
    return Describe(backend, engine, library::Forward(LibraryOf(l), Attributes(), engine),
                    std::vector<ArrayArg>{{Arg::kSrc, l.data}, {Arg::kDst, l.data}});
  });
}

}  // namespace mxtrain::onednn
