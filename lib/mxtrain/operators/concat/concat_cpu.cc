#include <algorithm>
#include <memory>
#include <vector>

#include "mxtrain/operator/axis_pieces.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/concat/concat.h"

namespace mxtrain {
namespace {

class ConcatCpu final : public Operator {
 public:
  explicit ConcatCpu(int axis) : axis_(axis) {}

  void Forward(const OpContext&, std::span<const TBlob> in, std::span<const OpReqType> req, std::span<const TBlob> out,
               std::span<const TBlob>) override {
    const AxisView view(out[0].shape, axis_);
    int64_t begin = 0;
    for (const TBlob& piece : in) {
      CopyToWhole(req[0], piece, view, begin, piece.shape[axis_], out[0]);
      begin += piece.shape[axis_];
    }
  }

  void Backward(const OpContext&, std::span<const TBlob> out_grad, std::span<const TBlob>, std::span<const TBlob>,
                std::span<const OpReqType> req, std::span<const TBlob> in_grad, std::span<const TBlob>) override {
    const AxisView view(out_grad[0].shape, axis_);
    int64_t begin = 0;
    for (size_t i = 0; i < in_grad.size(); ++i) {
      CopyFromWhole(req[i], out_grad[0], view, begin, in_grad[i].shape[axis_], in_grad[i]);
      begin += in_grad[i].shape[axis_];
    }
  }

 private:
  int axis_;
};

Expected<Plan, Refusal> PlanReference(const OperatorProperty& base, const PlanRequest& request, Backend&) {
  const TShape& whole = request.out[0].shape;
  const int axis = static_cast<const ConcatProperty&>(base).Axis(whole.ndim());
  std::vector<TShape> pieces;
  for (const TensorSpec& spec : request.in) pieces.push_back(spec.shape);
  Plan plan = PlainPlan(base, request);
  const Layout common = CommonLayout(request.in_layout, whole, axis, pieces);
  std::fill(plan.in.begin(), plan.in.end(), common);
  plan.out[0] = common;
  plan.make = [axis] { return std::make_unique<ConcatCpu>(axis); };
  return plan;
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(concat_cpu, registry) {
  registry.AddRow({"Concat", mxtrain::DeviceType::kCPU, "ref", mxtrain::kRefRank, mxtrain::PlanReference});
}
