// BatchNorm, and its fusion with ReLU, by oneDNN. Data, output and their gradients share one layout.
#include <cmath>
#include <cstring>

#include "mxtrain/device/cpu/onednn/onednn.h"
#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/batch_norm/batch_norm.h"

namespace mxtrain {
namespace {

using onednn::Arg;
using onednn::Descriptor;
using onednn::Primitive;
using P = BatchNormProperty;
enum Saved { kSavedMean, kSavedVariance, kSavedMask };

int64_t RoundUp(int64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

// Parts of a workspace behind oneDNN's own: two arrays of a value per channel, and what oneDNN writes although nobody will read it: forward
// the mask of a ReLU, backward the gradient of data that want none.
struct Parts {
  int64_t first = 0, second = 0, unread = 0, bytes = 0;

  Parts() = default;
  Parts(int64_t scratchpad, int64_t channels, int64_t unread_bytes) {
    const int64_t channel_bytes = RoundUp(channels * static_cast<int64_t>(sizeof(float)));
    first = RoundUp(scratchpad);
    second = first + channel_bytes;
    unread = second + channel_bytes;
    bytes = unread + unread_bytes;
  }
};

float* At(const OpContext& ctx, int64_t offset) {
  return reinterpret_cast<float*>(static_cast<char*>(ctx.workspace.data) + offset);
}

// What a plan has settled.
struct Settled {
  BatchNormParam param;
  onednn::BatchNorm record;
  Descriptor forward;
  std::optional<Descriptor> backward;
  Parts forward_parts, backward_parts;
  bool want_gamma = false, want_beta = false;
};

class BatchNormOneDnn final : public Operator {
 public:
  explicit BatchNormOneDnn(const Settled& settled) : settled_(settled), forward_(settled.forward.Make()) {
    if (settled.backward) backward_ = settled.backward->Make();
  }

  void Forward(const OpContext& ctx, std::span<const TBlob> in, std::span<const OpReqType> req, std::span<const TBlob> out,
               std::span<const TBlob> aux) override {
    const Parts& parts = settled_.forward_parts;
    const bool saves = !ctx.saved.empty();
    float* mean = global() ? aux[P::kMovingMean].dptr<float>() : saves ? ctx.saved[kSavedMean].dptr<float>() : At(ctx, parts.first);
    float* variance = global() ? aux[P::kMovingVariance].dptr<float>()
                      : saves  ? ctx.saved[kSavedVariance].dptr<float>()
                               : At(ctx, parts.second);
    void* mask = saves && settled_.record.relu ? ctx.saved[kSavedMask].data : static_cast<void*>(At(ctx, parts.unread));
    forward_->Execute({{Arg::kSrc, in[P::kData].data},
                       {Arg::kScale, in[P::kGamma].data},
                       {Arg::kShift, in[P::kBeta].data},
                       {Arg::kMean, mean},
                       {Arg::kVariance, variance},
                       {Arg::kDst, out[P::kOutput].data},
                       {Arg::kWorkspace, mask},
                       {Arg::kScratchpad, ctx.workspace.data}});
    const float eps = settled_.param.eps;
    Map<float>(ctx.run_ctx, out[P::kMean], req[P::kMean], [mean](int64_t c) { return mean[c]; });
    Map<float>(ctx.run_ctx, out[P::kInverseDeviation], req[P::kInverseDeviation],
               [variance, eps](int64_t c) { return 1 / std::sqrt(variance[c] + eps); });
  }

  void Backward(const OpContext& ctx, std::span<const TBlob> out_grad, std::span<const TBlob> in, std::span<const TBlob>,
                std::span<const OpReqType> req, std::span<const TBlob> in_grad, std::span<const TBlob> aux) override {
    const Parts& parts = settled_.backward_parts;
    const bool data = req[P::kData] != OpReqType::kNullOp;
    const float* mean = (global() ? aux[P::kMovingMean] : ctx.saved[kSavedMean]).dptr<float>();
    const float* variance = (global() ? aux[P::kMovingVariance] : ctx.saved[kSavedVariance]).dptr<float>();
    const bool gamma = settled_.want_gamma && settled_.record.scale;
    backward_->Execute({{Arg::kSrc, in[P::kData].data},
                        {Arg::kDiffDst, out_grad[P::kOutput].data},
                        {Arg::kScale, in[P::kGamma].data},
                        {Arg::kShift, At(ctx, parts.second)},  // must be bound, is not read
                        {Arg::kMean, const_cast<float*>(mean)},
                        {Arg::kVariance, const_cast<float*>(variance)},
                        {Arg::kWorkspace, settled_.record.relu ? ctx.saved[kSavedMask].data : nullptr},
                        {Arg::kDiffSrc, data ? in_grad[P::kData].data : At(ctx, parts.unread)},
                        {Arg::kDiffScale, gamma ? in_grad[P::kGamma].data : At(ctx, parts.first)},
                        {Arg::kDiffShift, settled_.want_beta ? in_grad[P::kBeta].data : At(ctx, parts.second)},
                        {Arg::kScratchpad, ctx.workspace.data}});
    if (settled_.want_gamma && !settled_.record.scale) std::memset(in_grad[P::kGamma].data, 0, in_grad[P::kGamma].Size() * sizeof(float));
    if (global()) return;
    Average(mean, aux[P::kMovingMean]);
    Average(variance, aux[P::kMovingVariance]);
  }

 private:
  bool global() const { return settled_.record.global_stats; }
  void Average(const float* now, const TBlob& moving) const {
    const float keep = settled_.param.momentum;
    for (int64_t c = 0; c < moving.Size(); ++c) moving.dptr<float>()[c] = keep * moving.dptr<float>()[c] + (1 - keep) * now[c];
  }

  Settled settled_;
  std::unique_ptr<Primitive> forward_, backward_;
};

std::string WhyNot(const BatchNormParam& param, const PlanRequest& request) {
  const TShape& shape = request.in[P::kData].shape;
  if (request.in[P::kData].type != DType::kFloat32) return "float32 only";
  if (shape.Size() == 0) return "an empty array";
  if (shape.ndim() < 2 || shape.ndim() > 5 || ChannelAxis(param, shape.ndim()) != 1) return "channels on axis 1 of 2 to 5 only";
  if (request.out_req[P::kOutput] != OpReqType::kWriteTo) return "only writes its output";
  return "";
}

onednn::BatchNorm Describe(const BatchNormParam& param, const PlanRequest& request, Layout layout, bool relu) {
  onednn::BatchNorm b;
  b.data = {request.in[P::kData].shape, layout};
  b.epsilon = param.eps;
  b.scale = !param.fix_gamma;
  b.global_stats = !request.is_train || param.use_global_stats;
  b.training = request.needs_backward || !b.global_stats;
  b.relu = relu;
  return b;
}

// Both primitives over one layout, unless only loops over elements are left.
Expected<Settled, Refusal> Try(const BatchNormParam& param, const PlanRequest& request, Backend& backend, Layout layout, bool relu) {
  const onednn::BatchNorm record = Describe(param, request, layout, relu);
  const onednn::Result forward = BatchNormForward(backend, record);
  if (!forward) return forward.error();
  Settled settled{param, record, *forward, {}, {}, {}, false, false};
  if (request.needs_backward) {
    const onednn::Result backward = BatchNormBackward(backend, record);
    if (!backward) return backward.error();
    settled.backward = *backward;
    settled.want_gamma = request.grad_req[P::kGamma] != OpReqType::kNullOp;
    settled.want_beta = request.grad_req[P::kBeta] != OpReqType::kNullOp;
  }
  return settled;
}

bool Slow(const Expected<Settled, Refusal>& settled) {
  return !settled || settled->forward.speed() == onednn::Speed::kReference ||
         (settled->backward && settled->backward->speed() == onednn::Speed::kReference);
}

}  // namespace

Expected<Plan, Refusal> PlanBatchNormOneDnn(const OperatorProperty& base, const PlanRequest& request, Backend& backend, bool relu) {
  const BatchNormParam& param = static_cast<const BatchNormProperty&>(base).param();
  if (std::string why = WhyNot(param, request); !why.empty()) return Refusal{why};
  const Layout offered = request.in_layout[P::kData].value_or(Layout());
  Expected<Settled, Refusal> settled = Try(param, request, backend, offered, relu);
  if (Slow(settled) && !offered.plain()) settled = Try(param, request, backend, Layout(), relu);
  if (!settled) return settled.error();

  const int64_t channels = request.in[P::kGamma].shape[0];
  const int64_t mask_bytes = relu ? settled->forward.workspace_bytes() : 0;
  settled->forward_parts = Parts(settled->forward.scratchpad_bytes(), channels, mask_bytes);
  Plan plan = PlainPlan(base, request);
  plan.in[P::kData] = plan.out[P::kOutput] = *settled->record.data.layout;
  plan.forward_workspace = settled->forward_parts.bytes;
  if (request.needs_backward) {
    const int64_t channel_bytes = channels * static_cast<int64_t>(sizeof(float));
    const int64_t data_bytes = settled->record.data.layout->Bytes(request.in[P::kData].shape, DType::kFloat32);
    const bool data = request.grad_req[P::kData] != OpReqType::kNullOp;
    settled->backward_parts = Parts(settled->backward->scratchpad_bytes(), channels, data ? 0 : data_bytes);
    plan.backward_workspace = settled->backward_parts.bytes;
    plan.accumulates = false;
    plan.saved = {channel_bytes, channel_bytes};
    if (relu) plan.saved.push_back(mask_bytes);
    plan.backward_reads = BackwardReads{{true, false, false}, {true, !param.fix_gamma, false}, {false, false, false}};
  }
  plan.make = [settled = *settled] { return std::make_unique<BatchNormOneDnn>(settled); };
  return plan;
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(batch_norm_onednn, registry) {
  using namespace mxtrain;
  registry.AddRow(
      {"BatchNorm", DeviceType::kCPU, "onednn", 100, [](const OperatorProperty& property, const PlanRequest& request, Backend& backend) {
         return PlanBatchNormOneDnn(property, request, backend, false);
       }});
}
