#include "mxtrain/operator/strided_view.h"
#include "mxtrain/operators/transpose/transpose.h"

namespace mxtrain::transpose {
namespace {

// The data in the order of the output.
template <typename Param>
StridedView ViewOf(const TShape& data, const EnvArguments& env) {
  const Order order = OrderOf(env.As<Param>(), data);
  const StridedView whole = StridedView::Whole(data);
  StridedView view;
  for (int i = 0; i < data.ndim(); ++i) view.Add(whole.dim[order.axis[i]], whole.stride[order.axis[i]]);
  return view;
}

template <typename Param>
void Forward(const TBlob& src, const EnvArguments& env, TBlob* ret, OpReqType req, RunContext) {
  CopyFromView(req, src, ViewOf<Param>(src.shape, env), *ret);
}
template <typename Param>
void Backward(const OutputGrad& head, const EnvArguments& env, TBlob* in_grad, OpReqType req, RunContext) {
  CopyToView(req, head.data, ViewOf<Param>(in_grad->shape, env), *in_grad);
}

template <typename Param>
void Add(OperatorRegistry& registry, const char* name) {
  SimpleOp(registry, name)
      .set_function(DeviceType::kCPU, Forward<Param>, kNoInplace)
      .set_gradient(DeviceType::kCPU, Backward<Param>, kNoInplace);
}

}  // namespace

MXTRAIN_OPERATOR(transpose_cpu, registry) {
  Add<TransposeParam>(registry, "transpose");
  Add<SwapAxisParam>(registry, "SwapAxis");
}

}  // namespace mxtrain::transpose
