#include <algorithm>

#include "mxtrain/operator/identity.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/make_loss/make_loss.h"

namespace mxtrain {
namespace {

class MakeLossCpu final : public Operator {
 public:
  explicit MakeLossCpu(const MakeLossParam& param) : param_(param) {}
  explicit MakeLossCpu(const NoParam&) : param_{{}, 1, 0, kMakeLossNull} {}

  void Forward(const OpContext& ctx, std::span<const TBlob> in, std::span<const OpReqType> req, std::span<const TBlob> out,
               std::span<const TBlob>) override {
    CopyBlob(ctx.run_ctx, req[0], in[0], out[0]);
  }

  void Backward(const OpContext& ctx, std::span<const TBlob>, std::span<const TBlob> in, std::span<const TBlob>,
                std::span<const OpReqType> req, std::span<const TBlob> in_grad, std::span<const TBlob>) override {
    SwitchFloating(in_grad[0].type, "MakeLoss", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const AccumulatorOf<T> gradient = AccumulatorOf<T>(param_.grad_scale) / static_cast<AccumulatorOf<T>>(Divisor<T>(in[0]));
      Map<T>(ctx.run_ctx, in_grad[0], req[0], [gradient](int64_t) { return gradient; });
    });
  }

 private:
  template <typename T>
  int64_t Divisor(const TBlob& data) const {
    if (param_.normalization == kMakeLossNull || data.shape.ndim() == 0) return 1;
    if (param_.normalization == kMakeLossBatch) return std::max<int64_t>(1, data.shape[0]);
    const T* x = data.dptr<T>();
    return std::max<int64_t>(1, std::count_if(x, x + data.Size(), [this](T v) { return v > param_.valid_thresh; }));
  }

  MakeLossParam param_;
};

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(make_loss_cpu, registry) {
  using namespace mxtrain;
  registry.AddRow(ReferenceRow<MakeLossProperty, MakeLossCpu>("MakeLoss"));
  registry.AddRow(ReferenceRow<MakeLossOfOnesProperty, MakeLossCpu>("make_loss"));
}
