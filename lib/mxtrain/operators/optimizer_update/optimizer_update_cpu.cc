#include <array>
#include <cmath>
#include <limits>

#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operator/registry.h"
#include "mxtrain/operators/optimizer_update/optimizer_update.h"

namespace mxtrain::optimizer_update {
namespace {

// The numbers of one step, in the type of the computation. Each rule gives the new weight and moves its states.
template <typename C>
struct Step {
  C lr, wd, rescale, correction, clip;
  C Clip(C g) const { return g > clip ? clip : g < -clip ? -clip : g; }
  C Gradient(C grad) const { return Clip(rescale * grad); }
};

template <typename C>
struct Sgd : Step<C> {
  static constexpr int kStates = 0;
  using Param = SgdParam;
  Sgd(const Step<C>& step, const Param&) : Step<C>(step) {}
  C operator()(C w, C grad, C*, C*) const { return (1 - this->lr * this->wd) * w - this->lr * this->Gradient(grad); }
};

template <typename C>
struct Momentum : Step<C> {
  static constexpr int kStates = 1;
  using Param = MomentumParam;
  C momentum;
  Momentum(const Step<C>& step, const Param& p) : Step<C>(step), momentum(static_cast<C>(p.momentum)) {}
  C operator()(C w, C grad, C* m, C*) const {
    *m = momentum * *m - this->lr * this->wd * w - this->lr * this->Gradient(grad);
    return w + *m;
  }
};

template <typename C>
struct Nag : Momentum<C> {
  using Momentum<C>::Momentum;
  C operator()(C w, C grad, C* m, C*) const {
    const C g = this->Gradient(grad) + this->wd * w;
    *m = this->momentum * *m - this->lr * g;
    return w + this->momentum * *m - this->lr * g;
  }
};

template <typename C>
struct Adam : Step<C> {
  static constexpr int kStates = 2;
  using Param = AdamParam;
  C beta1, beta2, one_minus_beta1, one_minus_beta2, epsilon;
  Adam(const Step<C>& step, const Param& p)
      : Step<C>(step),
        beta1(static_cast<C>(p.beta1)),
        beta2(static_cast<C>(p.beta2)),
        one_minus_beta1(static_cast<C>(1 - p.beta1)),
        one_minus_beta2(static_cast<C>(1 - p.beta2)),
        epsilon(static_cast<C>(p.epsilon)) {}
  C Move(C g, C* mean, C* var) const {
    *mean = beta1 * *mean + one_minus_beta1 * g;
    *var = beta2 * *var + one_minus_beta2 * g * g;
    return this->lr * this->correction * *mean / (std::sqrt(*var) + epsilon);
  }
  C operator()(C w, C grad, C* mean, C* var) const { return w - Move(this->Clip(this->rescale * grad + this->wd * w), mean, var); }
};

template <typename C>
struct AdamW : Adam<C> {
  using Adam<C>::Adam;
  C operator()(C w, C grad, C* mean, C* var) const {
    const C step = this->Move(this->Gradient(grad), mean, var);
    return w - this->lr * this->wd * w - step;
  }
};

// Pointers of one call; states that the rule lacks are null.
template <typename T>
struct Arrays {
  const T* weight;
  const T* grad;
  T* states[2];
  T* out;
};

template <bool kWrite, bool kAdd, typename Rule, typename T>
[[gnu::always_inline]] inline void Loop(int64_t begin, int64_t end, const Rule& rule, const Arrays<T>& a) {
  using C = ComputeOf<T>;
  T* const first = a.states[0];
  T* const second = a.states[1];
#pragma GCC ivdep
  for (int64_t i = begin; i < end; ++i) {
    C m = 0, v = 0;
    if constexpr (Rule::kStates > 0) m = static_cast<C>(first[i]);
    if constexpr (Rule::kStates > 1) v = static_cast<C>(second[i]);
    const C w = rule(static_cast<C>(a.weight[i]), static_cast<C>(a.grad[i]), &m, &v);
    if constexpr (Rule::kStates > 0) first[i] = static_cast<T>(m);
    if constexpr (Rule::kStates > 1) second[i] = static_cast<T>(v);
    if constexpr (kWrite) a.out[i] = static_cast<T>(kAdd ? static_cast<C>(a.out[i]) + w : w);
  }
}
// The form that every step of a training runs.
template <typename Rule>
MXTRAIN_SIMD void WriteLoop(int64_t begin, int64_t end, Rule rule, Arrays<float> a) {
  Loop<true, false>(begin, end, rule, a);
}

template <template <typename> class Rule>
class Update final : public Operator {
 public:
  using Param = typename Rule<float>::Param;
  explicit Update(const Param& param) : param_(param) {}

  void Forward(const OpContext&, std::span<const TBlob> in, std::span<const OpReqType> req, std::span<const TBlob> out,
               std::span<const TBlob> aux) override {
    SwitchFloating(in[0].type, "an optimizer", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using C = ComputeOf<T>;
      const Rule<C> rule(StepOf<C>(in[2].dptr<float>()), param_);
      Arrays<T> arrays{in[0].dptr<T>(), in[1].dptr<T>(), {}, out[0].dptr<T>()};
      for (size_t i = 0; i < aux.size(); ++i) arrays.states[i] = aux[i].dptr<T>();
      ParallelFor(in[0].StoredSize(), kParallelGrain, [&](int64_t begin, int64_t end) {
        if (req[0] == OpReqType::kNullOp) {
          Loop<false, false>(begin, end, rule, arrays);
        } else if (req[0] == OpReqType::kAddTo) {
          Loop<true, true>(begin, end, rule, arrays);
        } else if constexpr (std::is_same_v<T, float>) {
          WriteLoop(begin, end, rule, arrays);
        } else {
          Loop<true, false>(begin, end, rule, arrays);
        }
      });
    });
  }

 private:
  template <typename C>
  Step<C> StepOf(const float* s) const {
    const C clip = param_.clip_gradient >= 0 ? static_cast<C>(param_.clip_gradient) : std::numeric_limits<C>::infinity();
    return {static_cast<C>(s[kLr]), static_cast<C>(s[kWeightDecay]), static_cast<C>(s[kRescale]), static_cast<C>(s[kCorrection]), clip};
  }
  Param param_;
};

// Padding stays zero under every rule, but for Adam without epsilon: 0 / 0.
bool KeepsZeros(const SgdParam&) {
  return true;
}
bool KeepsZeros(const MomentumParam&) {
  return true;
}
bool KeepsZeros(const AdamParam& p) {
  return static_cast<float>(p.epsilon) > 0;
}

// The layout of weight, gradient and states alike: the first opaque one that is offered.
Layout LayoutOf(const PlanRequest& request, bool keeps_zeros) {
  std::vector<std::optional<Layout>> offers(request.in_layout.begin(), request.in_layout.end());
  if (offers.size() > 2) offers.resize(2);
  offers.insert(offers.end(), request.aux_layout.begin(), request.aux_layout.end());
  for (const std::optional<Layout>& offer : offers) {
    if (offer && !offer->plain() && (keeps_zeros || !offer->Padded(request.in[0].shape))) return *offer;
  }
  return {};
}

template <template <typename> class Rule>
Expected<Plan, Refusal> MakePlan(const OperatorProperty& property, const PlanRequest& request, Backend&) {
  using Param = typename Rule<float>::Param;
  const Param& param = static_cast<const PropertyWithParam<Param>&>(property).param();
  if (!IsFloating(request.in[0].type)) return Refusal{format("no function for {}", NameOf(request.in[0].type))};
  const Layout layout = LayoutOf(request, KeepsZeros(param));
  Plan plan;
  plan.in = {layout, layout, Layout()};
  plan.out = {layout};
  plan.aux.assign(request.aux.size(), layout);
  plan.forward_inplace = {{0, 0}};
  constexpr double kBytesPerNanosecond = 10;
  const double arrays = 3 + 2 * static_cast<double>(request.aux.size());
  plan.cost = arrays * static_cast<double>(layout.Bytes(request.in[0].shape, request.in[0].type)) / kBytesPerNanosecond;
  plan.make = [param]() -> std::unique_ptr<Operator> { return std::make_unique<Update<Rule>>(param); };
  return plan;
}

template <template <typename> class Rule>
void Add(OperatorRegistry& registry, const char* op) {
  registry.AddRow({op, DeviceType::kCPU, "ref", kRefRank, MakePlan<Rule>});
}

}  // namespace

MXTRAIN_OPERATOR(optimizer_update_cpu, registry) {
  Add<Sgd>(registry, "sgd_update");
  Add<Momentum>(registry, "sgd_mom_update");
  Add<Nag>(registry, "nag_mom_update");
  Add<Adam>(registry, "adam_update");
  Add<AdamW>(registry, "adamw_update");
}

}  // namespace mxtrain::optimizer_update
