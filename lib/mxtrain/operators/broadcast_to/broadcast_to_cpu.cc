#include <cstring>

#include "mxtrain/operator/identity.h"
#include "mxtrain/operator/strided_view.h"
#include "mxtrain/operators/broadcast_to/broadcast_to.h"
#include "mxtrain/operators/reduce/reduce_loops.h"

namespace mxtrain::broadcast_to {
namespace {

void Spread(const TBlob& src, const TBlob& out, OpReqType req) {
  const StridedView whole = StridedView::Whole(src.shape);
  StridedView view;
  for (int i = 0; i < whole.ndim; ++i) view.Add(out.shape[i], src.shape[i] == out.shape[i] ? whole.stride[i] : 0);
  CopyFromView(req, src, view, out);
}

void SumBack(const RunContext& ctx, const TBlob& head, const TBlob& grad, OpReqType req) {
  if (head.shape == grad.shape) return CopyBlob(ctx, req, head, grad);
  reduce::Groups groups;
  for (int i = 0; i < head.shape.ndim(); ++i) {
    reduce::Groups::Space& space = grad.shape[i] != head.shape[i] ? groups.reduced : groups.kept;
    space.Add(head.shape[i], head.shape.Product(i + 1, head.shape.ndim()));
  }
  SwitchFloating(head.type, "broadcast_to", [&](auto tag) {
    using T = typename decltype(tag)::type;
    reduce::ReduceGroups<reduce::Sum>(head.dptr<T>(), groups, grad.dptr<T>(), req);
  });
}

void Forward(const TBlob& src, const EnvArguments&, TBlob* ret, OpReqType req, RunContext) {
  Spread(src, *ret, req);
}
void Backward(const OutputGrad& head, const EnvArguments&, TBlob* in_grad, OpReqType req, RunContext ctx) {
  SumBack(ctx, head.data, *in_grad, req);
}

void ForwardLike(const TBlob& lhs, const TBlob&, const EnvArguments&, TBlob* ret, OpReqType req, RunContext) {
  Spread(lhs, *ret, req);
}
void BackwardLike(const OutputGrad& head, const EnvArguments&, TBlob* lhs_grad, TBlob* rhs_grad, OpReqType req_lhs, OpReqType req_rhs,
                  RunContext ctx) {
  SumBack(ctx, head.data, *lhs_grad, req_lhs);
  const bool writes = req_rhs != OpReqType::kNullOp && req_rhs != OpReqType::kAddTo;
  if (writes && rhs_grad->Size() > 0) std::memset(rhs_grad->data, 0, static_cast<size_t>(rhs_grad->Size() * SizeOf(rhs_grad->type)));
}

}  // namespace

MXTRAIN_OPERATOR(broadcast_to_cpu, registry) {
  for (const char* name : {"broadcast_axis", "broadcast_to"}) {
    SimpleOp(registry, name)
        .set_function(DeviceType::kCPU, Forward, kNoInplace)
        .set_gradient(DeviceType::kCPU, Backward, kNoInplace)
        .set_types(kFloatingTypes);
  }
  SimpleOp(registry, "broadcast_like")
      .set_function(DeviceType::kCPU, ForwardLike, kNoInplace)
      .set_gradient(DeviceType::kCPU, BackwardLike, kNoInplace)
      .set_types(kFloatingTypes);
}

}  // namespace mxtrain::broadcast_to
