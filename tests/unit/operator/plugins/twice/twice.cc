// SPDX-License-Identifier: Apache-2.0
// An operator outside the library: out = 2 data.
#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/simple_op.h"

namespace mxtrain {
namespace {

void Forward(const TBlob& src, const EnvArguments&, TBlob* ret, OpReqType req, RunContext ctx) {
  const float* x = src.dptr<float>();
  Map<float>(ctx, *ret, req, [x](int64_t i) { return 2 * x[i]; });
}

}  // namespace

MXTRAIN_OPERATOR(twice, registry) {
  SimpleOp(registry, "twice").set_function(DeviceType::kCPU, Forward, kInplaceInOut);
}

}  // namespace mxtrain
