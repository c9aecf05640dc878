#include "mxtrain/operators/slice/slice.h"

namespace mxtrain::slice {
namespace {

template <typename Param>
void Forward(const TBlob& src, const EnvArguments& env, TBlob* ret, OpReqType req, RunContext) {
  CopyFromView(req, src, ViewOf(env.As<Param>(), src.shape), *ret);
}
template <typename Param>
void Backward(const OutputGrad& head, const EnvArguments& env, TBlob* in_grad, OpReqType req, RunContext) {
  ScatterView(req, head.data, ViewOf(env.As<Param>(), in_grad->shape), *in_grad);
}

template <typename Param>
void Add(OperatorRegistry& registry, const char* name) {
  SimpleOp(registry, name)
      .set_function(DeviceType::kCPU, Forward<Param>, kNoInplace)
      .set_gradient(DeviceType::kCPU, Backward<Param>, kNoInplace);
}

}  // namespace

MXTRAIN_OPERATOR(slice_cpu, registry) {
  Add<SliceAxisParam>(registry, "slice_axis");
  Add<ReverseParam>(registry, "reverse");
}

}  // namespace mxtrain::slice
