// SPDX-License-Identifier: Apache-2.0
// A plug-in that fails halfway: it registers its own operator, then extends one of the plug-in
// `twice`, and then fails.
#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/simple_op.h"

namespace mxtrain {
namespace {

void Forward(const TBlob& src, const EnvArguments&, TBlob* ret, OpReqType req, RunContext ctx) {
  const float* x = src.dptr<float>();
  Map<float>(ctx, *ret, req, [x](int64_t i) { return 3 * x[i]; });
}

}  // namespace

MXTRAIN_OPERATOR(thrice, registry) {
  SimpleOp(registry, "thrice").set_function(DeviceType::kCPU, Forward, kInplaceInOut);
  SimpleOp(registry, "twice")
      .describe("thrice")
      .set_enable_scalar(true, 3)
      .set_resource_request(ResourceRequest::kRandom)
      .add_alias("tris");
  SimpleOp(registry, "twice").set_function(DeviceType::kCPU, Forward, kInplaceInOut);
}

}  // namespace mxtrain
