#include "mxtrain/operator/identity.h"
#include "mxtrain/operators/expand_dims/expand_dims.h"

namespace mxtrain::expand_dims {
namespace {

void Forward(const TBlob& src, const EnvArguments&, TBlob* ret, OpReqType req, RunContext ctx) {
  CopyBlob(ctx, req, src, *ret);
}
void Backward(const OutputGrad& head, const EnvArguments&, TBlob* in_grad, OpReqType req, RunContext ctx) {
  CopyBlob(ctx, req, head.data, *in_grad);
}

}  // namespace

MXTRAIN_OPERATOR(expand_dims_cpu, registry) {
  for (const char* name : {"expand_dims", "squeeze"}) {
    SimpleOp(registry, name).set_function(DeviceType::kCPU, Forward, kInplaceInOut).set_gradient(DeviceType::kCPU, Backward, kInplaceOutIn);
  }
}

}  // namespace mxtrain::expand_dims
