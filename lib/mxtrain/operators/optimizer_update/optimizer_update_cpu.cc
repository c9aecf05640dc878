#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

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
  C DecayedGradient(C w, C grad) const { return Clip(rescale * grad + wd * w); }
};

template <typename C>
struct Sgd : Step<C> {
  static constexpr int kStates = 0;
  using Param = SgdParam;
  Sgd(const Step<C>& step, const Param&) : Step<C>(step) {}
  C operator()(C w, C grad, C*) const { return (1 - this->lr * this->wd) * w - this->lr * this->Gradient(grad); }
};

template <typename C>
struct Momentum : Step<C> {
  static constexpr int kStates = 1;
  using Param = MomentumParam;
  C momentum;
  Momentum(const Step<C>& step, const Param& p) : Step<C>(step), momentum(static_cast<C>(p.momentum)) {}
  C operator()(C w, C grad, C* m) const {
    *m = momentum * *m - this->lr * this->wd * w - this->lr * this->Gradient(grad);
    return w + *m;
  }
};

template <typename C>
struct Nag : Momentum<C> {
  using Momentum<C>::Momentum;
  C operator()(C w, C grad, C* m) const {
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
  C Move(C g, C* s) const {
    s[0] = beta1 * s[0] + one_minus_beta1 * g;
    s[1] = beta2 * s[1] + one_minus_beta2 * g * g;
    return this->lr * Direction(s);
  }
  C Direction(const C* s) const { return this->correction * s[0] / (std::sqrt(s[1]) + epsilon); }
  C operator()(C w, C grad, C* s) const { return w - Move(this->DecayedGradient(w, grad), s); }
};

template <typename C>
struct AdamW : Adam<C> {
  using Adam<C>::Adam;
  C operator()(C w, C grad, C* s) const {
    const C step = this->Move(this->Gradient(grad), s);
    return w - this->lr * this->wd * w - step;
  }
};

template <typename C>
struct RmsProp : Step<C> {
  static constexpr int kStates = 1;
  using Param = RmsPropParam;
  C rho, one_minus_rho, momentum, epsilon;
  RmsProp(const Step<C>& step, const Param& p)
      : Step<C>(step),
        rho(static_cast<C>(p.rho)),
        one_minus_rho(static_cast<C>(1 - p.rho)),
        momentum(static_cast<C>(p.momentum)),
        epsilon(static_cast<C>(p.epsilon)) {}
  void Average(C value, C* mean) const { *mean = rho * *mean + one_minus_rho * value; }
  C operator()(C w, C grad, C* s) const {
    const C g = this->DecayedGradient(w, grad);
    Average(g * g, &s[0]);
    return w - this->lr * g / std::sqrt(s[0] + epsilon);
  }
};

template <typename C>
struct RmsPropMomentum : RmsProp<C> {
  static constexpr int kStates = 2;
  using RmsProp<C>::RmsProp;
  C operator()(C w, C grad, C* s) const {
    const C g = this->DecayedGradient(w, grad);
    this->Average(g * g, &s[0]);
    s[1] = this->momentum * s[1] - this->lr * g / std::sqrt(s[0] + this->epsilon);
    return w + s[1];
  }
};

template <typename C>
struct RmsPropCentered : RmsProp<C> {
  static constexpr int kStates = 3;
  using RmsProp<C>::RmsProp;
  C operator()(C w, C grad, C* s) const {
    const C g = this->DecayedGradient(w, grad);
    this->Average(g * g, &s[0]);
    this->Average(g, &s[1]);
    const C variance = s[0] - s[1] * s[1];  // by rounding it may fall below 0
    s[2] = this->momentum * s[2] - this->lr * g / std::sqrt((variance > 0 ? variance : 0) + this->epsilon);
    return w + s[2];
  }
};

template <typename C>
struct Adagrad : Step<C> {
  static constexpr int kStates = 1;
  using Param = AdagradParam;
  C epsilon;
  Adagrad(const Step<C>& step, const Param& p) : Step<C>(step), epsilon(static_cast<C>(p.epsilon)) {}
  C operator()(C w, C grad, C* s) const {
    const C g = this->Gradient(grad);
    s[0] += g * g;
    return w - this->lr * (g / std::sqrt(s[0] + epsilon) + this->wd * w);
  }
};

template <typename C>
struct Adadelta : Step<C> {
  static constexpr int kStates = 2;
  using Param = AdadeltaParam;
  C rho, one_minus_rho, epsilon;
  Adadelta(const Step<C>& step, const Param& p)
      : Step<C>(step), rho(static_cast<C>(p.rho)), one_minus_rho(static_cast<C>(1 - p.rho)), epsilon(static_cast<C>(p.epsilon)) {}
  C operator()(C w, C grad, C* s) const {
    const C g = this->Gradient(grad);
    s[0] = rho * s[0] + one_minus_rho * g * g;
    const C delta = g * std::sqrt(s[1] + epsilon) / std::sqrt(s[0] + epsilon);
    s[1] = rho * s[1] + one_minus_rho * delta * delta;
    return w - this->lr * (delta + this->wd * w);
  }
};

template <typename C>
struct Ftrl : Step<C> {
  static constexpr int kStates = 2;
  using Param = FtrlParam;
  C lambda1, beta;
  Ftrl(const Step<C>& step, const Param& p) : Step<C>(step), lambda1(static_cast<C>(p.lambda1)), beta(static_cast<C>(p.beta)) {}
  C operator()(C w, C grad, C* s) const {
    const C g = this->Gradient(grad), before = std::sqrt(s[1]);
    s[1] += g * g;
    const C root = std::sqrt(s[1]);
    s[0] += g - (root - before) * w / this->lr;
    const C shrunk = s[0] > lambda1 ? lambda1 - s[0] : s[0] < -lambda1 ? -lambda1 - s[0] : C(0);
    return shrunk / ((beta + root) / this->lr + this->wd);
  }
};

// A rule with a `ratio` has a first pass over the array: Measure moves the states and gives the number whose norm is wanted, beside that of
// the weights; Ratio makes of the two norms what operator() multiplies by.
template <typename C>
struct Lamb : Adam<C> {
  using Adam<C>::Adam;
  C ratio = 1;
  C Measure(C w, C grad, C* s) const {
    this->Move(this->Gradient(grad), s);
    return Update(w, s);
  }
  double Ratio(double weight_norm, double update_norm) const { return weight_norm > 0 && update_norm > 0 ? weight_norm / update_norm : 1; }
  C operator()(C w, C, C* s) const { return w - this->lr * ratio * Update(w, s); }

 private:
  C Update(C w, const C* s) const { return this->Direction(s) + this->wd * w; }
};

template <typename C>
struct Lars : Step<C> {
  static constexpr int kStates = 1;
  using Param = LarsParam;
  C momentum;
  double eta, epsilon;
  C ratio = 1;
  Lars(const Step<C>& step, const Param& p) : Step<C>(step), momentum(static_cast<C>(p.momentum)), eta(p.eta), epsilon(p.epsilon) {}
  C Measure(C, C grad, C*) const { return this->Gradient(grad); }
  double Ratio(double weight_norm, double gradient_norm) const {
    const bool adapts = this->wd > 0 && weight_norm > 0 && gradient_norm > 0;
    return adapts ? eta * weight_norm / (gradient_norm + static_cast<double>(this->wd) * weight_norm + epsilon) : 1;
  }
  C operator()(C w, C grad, C* m) const {
    *m = momentum * *m - this->lr * ratio * (this->Gradient(grad) + this->wd * w);
    return w + *m;
  }
};

constexpr int kMaxStates = 3;

// Pointers of one call; states that the rule lacks are null.
template <typename T>
struct Arrays {
  const T* weight;
  const T* grad;
  T* states[kMaxStates];
  T* out;
};

template <typename Rule, typename T, typename C>
[[gnu::always_inline]] inline void LoadStates(const Arrays<T>& a, int64_t i, C* states) {
  for (int k = 0; k < Rule::kStates; ++k) states[k] = static_cast<C>(a.states[k][i]);
}
template <typename Rule, typename T, typename C>
[[gnu::always_inline]] inline void StoreStates(const C* states, int64_t i, const Arrays<T>& a) {
  for (int k = 0; k < Rule::kStates; ++k) a.states[k][i] = static_cast<T>(states[k]);
}

template <bool kWrite, bool kAdd, typename Rule, typename T>
[[gnu::always_inline]] inline void Loop(int64_t begin, int64_t end, const Rule& rule, const Arrays<T>& a) {
  using C = ComputeOf<T>;
#pragma GCC ivdep
  for (int64_t i = begin; i < end; ++i) {
    C states[kMaxStates];
    LoadStates<Rule>(a, i, states);
    const C w = rule(static_cast<C>(a.weight[i]), static_cast<C>(a.grad[i]), states);
    StoreStates<Rule>(states, i, a);
    if constexpr (kWrite) a.out[i] = static_cast<T>(kAdd ? static_cast<C>(a.out[i]) + w : w);
  }
}
// The form that every step of a training runs.
template <typename Rule>
MXTRAIN_SIMD void WriteLoop(int64_t begin, int64_t end, Rule rule, Arrays<float> a) {
  Loop<true, false>(begin, end, rule, a);
}

constexpr int64_t kBlock = 4096;  // elements of a partial sum

template <template <typename> class Rule>
class Update final : public Operator {
 public:
  using Param = typename Rule<float>::Param;
  Update(const Param& param, int64_t stored_size) : param_(param) {
    if constexpr (requires(Rule<float> rule) { rule.ratio; }) block_sums_.resize(static_cast<size_t>((stored_size + kBlock - 1) / kBlock));
  }

  void Forward(const OpContext&, std::span<const TBlob> in, std::span<const OpReqType> req, std::span<const TBlob> out,
               std::span<const TBlob> aux) override {
    SwitchFloating(in[0].type, "an optimizer", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using C = ComputeOf<T>;
      Rule<C> rule(StepOf<C>(in[2].dptr<float>()), param_);
      Arrays<T> arrays{in[0].dptr<T>(), in[1].dptr<T>(), {}, out[0].dptr<T>()};
      for (size_t i = 0; i < aux.size(); ++i) arrays.states[i] = aux[i].dptr<T>();
      if constexpr (requires { rule.ratio; }) Measure(in[0].StoredSize(), arrays, &rule);
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
  // Sums of squares in double, in blocks of one size and in their order: the same for any number of threads.
  template <typename T, typename R>
  void Measure(int64_t size, const Arrays<T>& arrays, R* rule) {
    using C = ComputeOf<T>;
    ParallelFor(static_cast<int64_t>(block_sums_.size()), std::max<int64_t>(1, kParallelGrain / kBlock), [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        Squares sum;
        for (int64_t i = b * kBlock; i < std::min(size, (b + 1) * kBlock); ++i) {
          C states[kMaxStates];
          LoadStates<R>(arrays, i, states);
          const C w = static_cast<C>(arrays.weight[i]);
          const auto measured = static_cast<double>(rule->Measure(w, static_cast<C>(arrays.grad[i]), states));
          StoreStates<R>(states, i, arrays);
          sum.weight += static_cast<double>(w) * static_cast<double>(w);
          sum.measured += measured * measured;
        }
        block_sums_[static_cast<size_t>(b)] = sum;
      }
    });
    Squares whole;
    for (const Squares& sum : block_sums_) {
      whole.weight += sum.weight;
      whole.measured += sum.measured;
    }
    rule->ratio = static_cast<C>(rule->Ratio(std::sqrt(whole.weight), std::sqrt(whole.measured)));
  }

  struct Squares {
    double weight = 0, measured = 0;
  };
  Param param_;
  std::vector<Squares> block_sums_;  // of Measure
};

// Padding stays zero under every rule, but for those that divide by a root without an epsilon: 0 / 0.
template <typename P>
bool KeepsZeros(const P& param) {
  if constexpr (std::is_same_v<P, LarsParam> || !requires { param.epsilon; }) {
    return true;
  } else {
    return static_cast<float>(param.epsilon) > 0;
  }
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
  const int64_t stored_size = layout.Bytes(request.in[0].shape, request.in[0].type) / static_cast<int64_t>(SizeOf(request.in[0].type));
  plan.make = [param, stored_size]() -> std::unique_ptr<Operator> { return std::make_unique<Update<Rule>>(param, stored_size); };
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
  Add<RmsProp>(registry, "rmsprop_update");
  Add<RmsPropMomentum>(registry, "rmsprop_mom_update");
  Add<RmsPropCentered>(registry, "rmspropalex_update");
  Add<Adagrad>(registry, "adagrad_update");
  Add<Adadelta>(registry, "adadelta_update");
  Add<Ftrl>(registry, "ftrl_update");
  Add<Lamb>(registry, "lamb_update");
  Add<Lars>(registry, "lars_update");
}

}  // namespace mxtrain::optimizer_update
