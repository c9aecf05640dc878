#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/registry.h"
#include "mxtrain/operators/random_sample/random_sample.h"

namespace mxtrain::random_sample {
namespace {

template <typename P>
class Sample final : public Operator {
 public:
  explicit Sample(const P& param) : param_(param) {}
  void Forward(const OpContext& ctx, std::span<const TBlob>, std::span<const OpReqType> req, std::span<const TBlob> out,
               std::span<const TBlob>) override {
    const Resource& random = ctx.requested[0];
    SwitchFloating(out[0].type, "a random array", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using V = std::conditional_t<std::is_same_v<T, double>, double, float>;
      Map<T>(ctx.run_ctx, out[0], req[0], [&](int64_t i) { return static_cast<V>(param_.Draw(random, static_cast<uint64_t>(i))); });
    });
  }

 private:
  P param_;
};

template <typename P>
Expected<Plan, Refusal> MakePlan(const OperatorProperty& property, const PlanRequest& request, Backend&) {
  if (!IsFloating(request.out[0].type)) return Refusal{format("no function for {}", NameOf(request.out[0].type))};
  Plan plan;
  plan.out = {Layout()};
  constexpr double kNanosecondsPerDraw = 10;
  plan.cost = kNanosecondsPerDraw * static_cast<double>(request.out[0].shape.Size());
  plan.make = [param = static_cast<const PropertyWithParam<P>&>(property).param()]() -> std::unique_ptr<Operator> {
    return std::make_unique<Sample<P>>(param);
  };
  return plan;
}

}  // namespace

MXTRAIN_OPERATOR(random_sample_cpu, registry) {
  registry.AddRow({"_random_uniform", DeviceType::kCPU, "ref", kRefRank, MakePlan<UniformParam>});
  registry.AddRow({"_random_normal", DeviceType::kCPU, "ref", kRefRank, MakePlan<NormalParam>});
}

}  // namespace mxtrain::random_sample
