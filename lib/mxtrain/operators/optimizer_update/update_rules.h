// SPDX-License-Identifier: Apache-2.0
#pragma once
// The rules of optimizer_update.h, element by element, for host and device. C is float or double.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "mxtrain/base/macros.h"
#include "mxtrain/base/philox.h"
#include "mxtrain/operators/optimizer_update/optimizer_update.h"

namespace mxtrain::optimizer_update {

// The scalars of one step, in the computation type. Each rule returns the new weight and updates
// its states.
template <typename C>
struct Step {
  C lr, wd, rescale, correction, clip;
  MXTRAIN_HD bool Skipped() const { return rescale == 0; }
  MXTRAIN_HD C Clip(C g) const { return g > clip ? clip : g < -clip ? -clip : g; }
  MXTRAIN_HD C Gradient(C grad) const { return Clip(rescale * grad); }
  MXTRAIN_HD C DecayedGradient(C w, C grad) const { return Clip(rescale * grad + wd * w); }
};

template <typename C>
MXTRAIN_HD Step<C> StepOf(const float* scalars, double clip_gradient) {
  const C clip =
      clip_gradient >= 0 ? static_cast<C>(clip_gradient) : std::numeric_limits<C>::infinity();
  return {static_cast<C>(scalars[kLr]), static_cast<C>(scalars[kWeightDecay]),
          static_cast<C>(scalars[kRescale]), static_cast<C>(scalars[kCorrection]), clip};
}

// A decaying mean.
template <typename C>
struct Mean {
  C keep, add;
  MXTRAIN_HD explicit Mean(double decay)
      : keep(static_cast<C>(decay)), add(static_cast<C>(1 - decay)) {}
  MXTRAIN_HD C With(C mean, C x) const { return keep * mean + add * x; }
  MXTRAIN_HD C WithSquare(C mean, C x) const { return keep * mean + add * x * x; }
};

// -1, 0 or 1; NaN of NaN.
template <typename C>
MXTRAIN_HD C SignOf(C x) {
  return x > 0 ? C(1) : x < 0 ? C(-1) : x;
}

// The name and the parameters of a rule; its states are those of updates::UpdateOf(kName).
#define MXTRAIN_UPDATE(name, Constants)      \
  static constexpr const char* kName = name; \
  using Param = UpdateParam<updates::Constants>;

template <typename C>
struct Sgd : Step<C> {
  MXTRAIN_UPDATE("sgd_update", NoConstants)
  MXTRAIN_HD Sgd(const Step<C>& step, const Param&) : Step<C>(step) {}
  MXTRAIN_HD C operator()(C w, C grad, C*) const {
    return (1 - this->lr * this->wd) * w - this->lr * this->Gradient(grad);
  }
};

template <typename C>
struct SignSgd : Sgd<C> {
  MXTRAIN_UPDATE("signsgd_update", NoConstants)
  using Sgd<C>::Sgd;
  MXTRAIN_HD C operator()(C w, C grad, C*) const {
    return (1 - this->lr * this->wd) * w - this->lr * SignOf(this->Gradient(grad));
  }
};

template <typename C>
struct Momentum : Step<C> {
  MXTRAIN_UPDATE("sgd_mom_update", Momentum)
  C momentum;
  MXTRAIN_HD Momentum(const Step<C>& step, const Param& p)
      : Step<C>(step), momentum(static_cast<C>(p.momentum)) {}
  MXTRAIN_HD C operator()(C w, C grad, C* m) const {
    *m = momentum * *m - this->lr * this->wd * w - this->lr * this->Gradient(grad);
    return w + *m;
  }
};

template <typename C>
struct Nag : Momentum<C> {
  MXTRAIN_UPDATE("nag_mom_update", Momentum)
  using Momentum<C>::Momentum;
  MXTRAIN_HD C operator()(C w, C grad, C* m) const {
    const C g = this->Gradient(grad) + this->wd * w;
    *m = this->momentum * *m - this->lr * g;
    return w + this->momentum * *m - this->lr * g;
  }
};

template <typename C>
struct Dcasgd : Step<C> {
  MXTRAIN_UPDATE("dcasgd_update", Dcasgd)
  C momentum, lambda;
  MXTRAIN_HD Dcasgd(const Step<C>& step, const Param& p)
      : Step<C>(step), momentum(static_cast<C>(p.momentum)), lambda(static_cast<C>(p.lambda)) {}
  MXTRAIN_HD C operator()(C w, C grad, C* m) const {
    const C g = this->Gradient(grad);
    *m = momentum * *m - this->lr * (g + this->wd * w + lambda * g * g * *m);
    return w + *m;
  }
};

template <typename C>
struct Signum : Step<C> {
  MXTRAIN_UPDATE("signum_update", Signum)
  C momentum, one_minus_momentum, wd_lh;
  MXTRAIN_HD Signum(const Step<C>& step, const Param& p)
      : Step<C>(step),
        momentum(static_cast<C>(p.momentum)),
        one_minus_momentum(static_cast<C>(1 - p.momentum)),
        wd_lh(static_cast<C>(p.wd_lh)) {}
  MXTRAIN_HD C operator()(C w, C grad, C* m) const {
    *m = momentum * *m - one_minus_momentum * (this->Gradient(grad) + this->wd * w);
    return (1 - this->lr * wd_lh) * w + this->lr * SignOf(*m);
  }
};

template <typename C>
struct Lion : Step<C> {
  MXTRAIN_UPDATE("lion_update", Lion)
  Mean<C> direction, mean;
  MXTRAIN_HD Lion(const Step<C>& step, const Param& p)
      : Step<C>(step), direction(p.beta1), mean(p.beta2) {}
  MXTRAIN_HD C operator()(C w, C grad, C* m) const {
    const C g = this->Gradient(grad), sign = SignOf(direction.With(*m, g));
    *m = mean.With(*m, g);
    return (1 - this->lr * this->wd) * w - this->lr * sign;
  }
};

// Rules with the moments of gradients: their mean and the mean of their squares.
template <typename C, typename P>
struct WithMoments : Step<C> {
  Mean<C> mean, square;
  C epsilon;
  MXTRAIN_HD WithMoments(const Step<C>& step, const P& p)
      : Step<C>(step), mean(p.beta1), square(p.beta2), epsilon(static_cast<C>(p.epsilon)) {}
  MXTRAIN_HD void Add(C g, C* s) const {
    s[0] = mean.With(s[0], g);
    s[1] = square.WithSquare(s[1], g);
  }
  MXTRAIN_HD C Direction(const C* s) const {
    return this->correction * s[0] / (std::sqrt(s[1]) + epsilon);
  }
};

template <typename C>
struct Adam : WithMoments<C, UpdateParam<updates::Adam>> {
  MXTRAIN_UPDATE("adam_update", Adam)
  using WithMoments<C, Param>::WithMoments;
  MXTRAIN_HD C operator()(C w, C grad, C* s) const {
    this->Add(this->DecayedGradient(w, grad), s);
    return w - this->lr * this->Direction(s);
  }
};

template <typename C>
struct AdamW : Adam<C> {
  MXTRAIN_UPDATE("adamw_update", Adam)
  using Adam<C>::Adam;
  MXTRAIN_HD C operator()(C w, C grad, C* s) const {
    this->Add(this->Gradient(grad), s);
    return w - this->lr * this->wd * w - this->lr * this->Direction(s);
  }
};

// A rule with a `ratio` has a first pass over the array: Measure updates the states and returns the
// number whose norm is needed in addition to that of the weights; Ratio computes the factor of
// operator() from the two norms.
template <typename C>
struct Lamb : WithMoments<C, UpdateParam<updates::Lamb>> {
  MXTRAIN_UPDATE("lamb_update", Lamb)
  using WithMoments<C, Param>::WithMoments;
  C ratio = 1;
  MXTRAIN_HD C Measure(C w, C grad, C* s) const {
    this->Add(this->Gradient(grad), s);
    return Update(w, s);
  }
  MXTRAIN_HD double Ratio(double weight_norm, double update_norm) const {
    return weight_norm > 0 && update_norm > 0 ? weight_norm / update_norm : 1;
  }
  MXTRAIN_HD C operator()(C w, C, C* s) const { return w - this->lr * ratio * Update(w, s); }

 private:
  MXTRAIN_HD C Update(C w, const C* s) const { return this->Direction(s) + this->wd * w; }
};

template <typename C>
struct Lars : Step<C> {
  MXTRAIN_UPDATE("lars_update", Lars)
  C momentum;
  double eta, epsilon;
  C ratio = 1;
  MXTRAIN_HD Lars(const Step<C>& step, const Param& p)
      : Step<C>(step), momentum(static_cast<C>(p.momentum)), eta(p.eta), epsilon(p.epsilon) {}
  MXTRAIN_HD C Measure(C, C grad, C*) const { return this->Gradient(grad); }
  MXTRAIN_HD double Ratio(double weight_norm, double gradient_norm) const {
    const bool adapts = this->wd > 0 && weight_norm > 0 && gradient_norm > 0;
    return adapts ? eta * weight_norm /
                        (gradient_norm + static_cast<double>(this->wd) * weight_norm + epsilon)
                  : 1;
  }
  MXTRAIN_HD C operator()(C w, C grad, C* m) const {
    *m = momentum * *m - this->lr * ratio * (this->Gradient(grad) + this->wd * w);
    return w + *m;
  }
};

// 1 - beta^t, the sum of the weights of a decaying mean after t steps.
MXTRAIN_HD inline double SumOfWeights(double beta, double t) {
  return 1 - std::pow(beta, t);
}

template <typename C>
struct Ftml : WithMoments<C, UpdateParam<updates::Ftml>> {
  MXTRAIN_UPDATE("ftml_update", Ftml)
  static constexpr bool kKeepsZeros = false;  // d does not
  C sum1, sum2;
  MXTRAIN_HD Ftml(const Step<C>& step, const Param& p)
      : WithMoments<C, Param>(step, p),
        sum1(static_cast<C>(SumOfWeights(p.beta1, static_cast<double>(step.correction)))),
        sum2(static_cast<C>(SumOfWeights(p.beta2, static_cast<double>(step.correction)))) {}
  MXTRAIN_HD bool Skipped() const { return Step<C>::Skipped() || this->lr == 0; }
  // States: d, v, z.
  MXTRAIN_HD C operator()(C w, C grad, C* s) const {
    const C g = this->DecayedGradient(w, grad), before = s[0];
    s[1] = this->square.WithSquare(s[1], g);
    s[0] = sum1 / this->lr * (std::sqrt(s[1] / sum2) + this->epsilon);
    s[2] = this->mean.With(s[2], g) - (s[0] - this->mean.keep * before) * w;
    return -s[2] / s[0];
  }
};

template <typename C>
struct Nadam : WithMoments<C, UpdateParam<updates::Nadam>> {
  MXTRAIN_UPDATE("nadam_update", Nadam)
  C of_gradient, of_mean, root;  // factors of the step
  MXTRAIN_HD Nadam(const Step<C>& step, const Param& p) : WithMoments<C, Param>(step, p) {
    const double t = static_cast<double>(step.correction),
                 decay = std::pow(kDecay, p.schedule_decay);
    double power = 1, product = 1, steps = 0;
    // Until the product is nothing beside 1, or the factors are beta1: some 60 steps by default,
    // and at most about 3300, since with a slow decay the first factors are near a half.
    for (; steps < t && product > kNothing && power > kNothing; ++steps) {
      power *= decay;
      product *= p.beta1 * (1 - power / 2);
    }
    if (product > kNothing) product *= std::pow(p.beta1, t - steps);
    const double now = p.beta1 * (1 - std::pow(decay, t) / 2),
                 next = p.beta1 * (1 - std::pow(decay, t + 1) / 2);
    of_gradient = static_cast<C>((1 - now) / (1 - product));
    of_mean = static_cast<C>(next / (1 - product * next));
    root = static_cast<C>(std::sqrt(SumOfWeights(p.beta2, t)));
  }
  MXTRAIN_HD C operator()(C w, C grad, C* s) const {
    const C g = this->DecayedGradient(w, grad);
    this->Add(g, s);
    return w -
           this->lr * (of_gradient * g + of_mean * s[0]) / (std::sqrt(s[1]) / root + this->epsilon);
  }

 private:
  static constexpr double kDecay = 0.96, kNothing = 1e-17;
};

template <typename C>
struct Adamax : Step<C> {
  MXTRAIN_UPDATE("adamax_update", Adamax)
  Mean<C> mean;
  C beta2;
  MXTRAIN_HD Adamax(const Step<C>& step, const Param& p)
      : Step<C>(step), mean(p.beta1), beta2(static_cast<C>(p.beta2)) {}
  MXTRAIN_HD C operator()(C w, C grad, C* s) const {
    const C g = this->DecayedGradient(w, grad), size = std::abs(g), decayed = beta2 * s[1];
    s[0] = mean.With(s[0], g);
    s[1] = decayed > size ? decayed : size;  // NaN of a NaN gradient
    return s[1] == 0 ? w : w - this->lr * this->correction * s[0] / s[1];
  }
};

template <typename C>
struct RmsProp : Step<C> {
  MXTRAIN_UPDATE("rmsprop_update", RmsProp)
  Mean<C> mean;
  C momentum, epsilon;
  MXTRAIN_HD RmsProp(const Step<C>& step, const Param& p)
      : Step<C>(step),
        mean(p.rho),
        momentum(static_cast<C>(p.momentum)),
        epsilon(static_cast<C>(p.epsilon)) {}
  MXTRAIN_HD C operator()(C w, C grad, C* s) const {
    const C g = this->DecayedGradient(w, grad);
    s[0] = mean.With(s[0], g * g);
    return w - this->lr * g / std::sqrt(s[0] + epsilon);
  }
};

template <typename C>
struct RmsPropMomentum : RmsProp<C> {
  MXTRAIN_UPDATE("rmsprop_mom_update", RmsProp)
  using RmsProp<C>::RmsProp;
  MXTRAIN_HD C operator()(C w, C grad, C* s) const {
    const C g = this->DecayedGradient(w, grad);
    s[0] = this->mean.With(s[0], g * g);
    s[1] = this->momentum * s[1] - this->lr * g / std::sqrt(s[0] + this->epsilon);
    return w + s[1];
  }
};

template <typename C>
struct RmsPropCentered : RmsProp<C> {
  MXTRAIN_UPDATE("rmspropalex_update", RmsProp)
  using RmsProp<C>::RmsProp;
  MXTRAIN_HD C operator()(C w, C grad, C* s) const {
    const C g = this->DecayedGradient(w, grad);
    s[0] = this->mean.With(s[0], g * g);
    s[1] = this->mean.With(s[1], g);
    const C variance = s[0] - s[1] * s[1];  // may be negative by rounding
    s[2] = this->momentum * s[2] -
           this->lr * g / std::sqrt((variance > 0 ? variance : 0) + this->epsilon);
    return w + s[2];
  }
};

template <typename C>
struct Adagrad : Step<C> {
  MXTRAIN_UPDATE("adagrad_update", Adagrad)
  C epsilon;
  MXTRAIN_HD Adagrad(const Step<C>& step, const Param& p)
      : Step<C>(step), epsilon(static_cast<C>(p.epsilon)) {}
  MXTRAIN_HD C operator()(C w, C grad, C* s) const {
    const C g = this->Gradient(grad);
    s[0] += g * g;
    return w - this->lr * (g / std::sqrt(s[0] + epsilon) + this->wd * w);
  }
};

template <typename C>
struct Adadelta : Step<C> {
  MXTRAIN_UPDATE("adadelta_update", Adadelta)
  Mean<C> mean;
  C epsilon;
  MXTRAIN_HD Adadelta(const Step<C>& step, const Param& p)
      : Step<C>(step), mean(p.rho), epsilon(static_cast<C>(p.epsilon)) {}
  MXTRAIN_HD C operator()(C w, C grad, C* s) const {
    const C g = this->Gradient(grad);
    s[0] = mean.WithSquare(s[0], g);
    const C delta = g * std::sqrt(s[1] + epsilon) / std::sqrt(s[0] + epsilon);
    s[1] = mean.WithSquare(s[1], delta);
    return w - this->lr * (delta + this->wd * w);
  }
};

template <typename C>
struct Ftrl : Step<C> {
  MXTRAIN_UPDATE("ftrl_update", Ftrl)
  C lambda1, beta;
  MXTRAIN_HD Ftrl(const Step<C>& step, const Param& p)
      : Step<C>(step), lambda1(static_cast<C>(p.lambda1)), beta(static_cast<C>(p.beta)) {}
  MXTRAIN_HD C operator()(C w, C grad, C* s) const {
    const C g = this->Gradient(grad), before = std::sqrt(s[1]);
    s[1] += g * g;
    const C root = std::sqrt(s[1]);
    s[0] += g - (root - before) * w / this->lr;
    const C shrunk = s[0] > lambda1 ? lambda1 - s[0] : s[0] < -lambda1 ? -lambda1 - s[0] : C(0);
    return shrunk / ((beta + root) / this->lr + this->wd);
  }
};

// A rule with Noise(i) adds it to element i.
template <typename C>
struct Sgld : Step<C> {
  MXTRAIN_UPDATE("sgld_update", NoConstants)
  static constexpr bool kKeepsZeros = false;
  C scale;
  uint32_t key;
  MXTRAIN_HD Sgld(const Step<C>& step, const Param&)
      : Step<C>(step), scale(step.lr > 0 ? std::sqrt(step.lr) : C(0)), key(0) {
    const auto number = static_cast<float>(step.correction);
    std::memcpy(&key, &number, sizeof(key));
  }
  MXTRAIN_HD C operator()(C w, C grad, C*) const {
    return w - this->lr / 2 * (this->Gradient(grad) + this->wd * w);
  }
  MXTRAIN_HD C Noise(int64_t i) const {
    constexpr uint64_t kStream = 0x5a1d;
    return scale * static_cast<C>(NormalAt(key, kStream, 0, static_cast<uint64_t>(i)));
  }
};

#undef MXTRAIN_UPDATE

// add(RuleTag<Rule>{}) for every rule.
template <template <typename> class R>
struct RuleTag {
  template <typename C>
  using Rule = R<C>;
};
template <typename F>
void ForEachRule(F add) {
  add(RuleTag<Sgd>{}), add(RuleTag<Momentum>{}), add(RuleTag<Nag>{}), add(RuleTag<Adam>{});
  add(RuleTag<AdamW>{}), add(RuleTag<RmsProp>{}), add(RuleTag<RmsPropMomentum>{});
  add(RuleTag<RmsPropCentered>{}), add(RuleTag<Adagrad>{}), add(RuleTag<Adadelta>{});
  add(RuleTag<Ftrl>{}), add(RuleTag<Lamb>{}), add(RuleTag<Lars>{}), add(RuleTag<SignSgd>{});
  add(RuleTag<Signum>{}), add(RuleTag<Ftml>{}), add(RuleTag<Nadam>{}), add(RuleTag<Adamax>{});
  add(RuleTag<Lion>{}), add(RuleTag<Dcasgd>{}), add(RuleTag<Sgld>{});
}
// Of group_adagrad_update, whose kernel is its own (group_adagrad_loops.h).
using GroupAdagradParam = UpdateParam<updates::GroupAdagrad>;

template <typename Rule>
inline constexpr int kStatesOf = updates::UpdateOf(Rule::kName).num_states();

inline constexpr int kMaxStates = updates::Update::kMostStates;

// Pointers of one weight's update; states that the rule does not have are null.
template <typename T>
struct Arrays {
  const T* weight;
  const T* grad;
  T* states[kMaxStates];
  T* out;
};

template <typename Rule, typename T, typename C>
[[gnu::always_inline]] MXTRAIN_HD inline void LoadStates(const Arrays<T>& a, int64_t i, C* states) {
  for (int k = 0; k < kStatesOf<Rule>; ++k) states[k] = static_cast<C>(a.states[k][i]);
}
template <typename Rule, typename T, typename C>
[[gnu::always_inline]] MXTRAIN_HD inline void StoreStates(const C* states, int64_t i,
                                                          const Arrays<T>& a) {
  for (int k = 0; k < kStatesOf<Rule>; ++k) a.states[k][i] = static_cast<T>(states[k]);
}

template <typename Rule>
inline constexpr bool kHasRatio = requires(Rule rule) {
  rule.ratio;
};

template <typename Rule>
inline constexpr bool kHasNoise = requires(const Rule rule) {
  rule.Noise(int64_t{});
};

// Sums of squares of the weights and of Measure's results.
struct Squares {
  double weight = 0, measured = 0;
  MXTRAIN_HD friend Squares operator+(const Squares& a, const Squares& b) {
    return {a.weight + b.weight, a.measured + b.measured};
  }
};

// Of element i. Updates the states.
template <typename Rule, typename C, typename T>
MXTRAIN_HD Squares MeasureAt(const Rule& rule, const Arrays<T>& a, int64_t i) {
  C states[kMaxStates];
  LoadStates<Rule>(a, i, states);
  const C w = static_cast<C>(a.weight[i]);
  const auto measured = static_cast<double>(rule.Measure(w, static_cast<C>(a.grad[i]), states));
  StoreStates<Rule>(states, i, a);
  return {static_cast<double>(w) * static_cast<double>(w), measured * measured};
}
template <typename Rule>
MXTRAIN_HD auto RatioOf(const Rule& rule, const Squares& sums) {
  return static_cast<decltype(rule.lr)>(
      rule.Ratio(std::sqrt(sums.weight), std::sqrt(sums.measured)));
}

// The new weight at element i. Updates the states.
template <typename Rule, typename C, typename T>
[[gnu::always_inline]] MXTRAIN_HD inline C UpdateAt(const Rule& rule, const Arrays<T>& a,
                                                    int64_t i) {
  C states[kMaxStates];
  LoadStates<Rule>(a, i, states);
  C w = rule(static_cast<C>(a.weight[i]), static_cast<C>(a.grad[i]), states);
  if constexpr (kHasNoise<Rule>) w += rule.Noise(i);
  StoreStates<Rule>(states, i, a);
  return w;
}

}  // namespace mxtrain::optimizer_update
