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

template <typename C>
struct Sgd : Step<C> {
  static constexpr int kStates = 0;
  using Param = SgdParam;
  MXTRAIN_HD Sgd(const Step<C>& step, const Param&) : Step<C>(step) {}
  MXTRAIN_HD C operator()(C w, C grad, C*) const {
    return (1 - this->lr * this->wd) * w - this->lr * this->Gradient(grad);
  }
};

template <typename C>
struct Momentum : Step<C> {
  static constexpr int kStates = 1;
  using Param = MomentumParam;
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
  using Momentum<C>::Momentum;
  MXTRAIN_HD C operator()(C w, C grad, C* m) const {
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
  MXTRAIN_HD Adam(const Step<C>& step, const Param& p)
      : Step<C>(step),
        beta1(static_cast<C>(p.beta1)),
        beta2(static_cast<C>(p.beta2)),
        one_minus_beta1(static_cast<C>(1 - p.beta1)),
        one_minus_beta2(static_cast<C>(1 - p.beta2)),
        epsilon(static_cast<C>(p.epsilon)) {}
  MXTRAIN_HD C Move(C g, C* s) const {
    s[0] = beta1 * s[0] + one_minus_beta1 * g;
    s[1] = beta2 * s[1] + one_minus_beta2 * g * g;
    return this->lr * Direction(s);
  }
  MXTRAIN_HD C Direction(const C* s) const {
    return this->correction * s[0] / (std::sqrt(s[1]) + epsilon);
  }
  MXTRAIN_HD C operator()(C w, C grad, C* s) const {
    return w - Move(this->DecayedGradient(w, grad), s);
  }
};

template <typename C>
struct AdamW : Adam<C> {
  using Adam<C>::Adam;
  MXTRAIN_HD C operator()(C w, C grad, C* s) const {
    const C step = this->Move(this->Gradient(grad), s);
    return w - this->lr * this->wd * w - step;
  }
};

template <typename C>
struct RmsProp : Step<C> {
  static constexpr int kStates = 1;
  using Param = RmsPropParam;
  C rho, one_minus_rho, momentum, epsilon;
  MXTRAIN_HD RmsProp(const Step<C>& step, const Param& p)
      : Step<C>(step),
        rho(static_cast<C>(p.rho)),
        one_minus_rho(static_cast<C>(1 - p.rho)),
        momentum(static_cast<C>(p.momentum)),
        epsilon(static_cast<C>(p.epsilon)) {}
  MXTRAIN_HD void Average(C value, C* mean) const { *mean = rho * *mean + one_minus_rho * value; }
  MXTRAIN_HD C operator()(C w, C grad, C* s) const {
    const C g = this->DecayedGradient(w, grad);
    Average(g * g, &s[0]);
    return w - this->lr * g / std::sqrt(s[0] + epsilon);
  }
};

template <typename C>
struct RmsPropMomentum : RmsProp<C> {
  static constexpr int kStates = 2;
  using RmsProp<C>::RmsProp;
  MXTRAIN_HD C operator()(C w, C grad, C* s) const {
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
  MXTRAIN_HD C operator()(C w, C grad, C* s) const {
    const C g = this->DecayedGradient(w, grad);
    this->Average(g * g, &s[0]);
    this->Average(g, &s[1]);
    const C variance = s[0] - s[1] * s[1];  // may be negative by rounding
    s[2] = this->momentum * s[2] -
           this->lr * g / std::sqrt((variance > 0 ? variance : 0) + this->epsilon);
    return w + s[2];
  }
};

template <typename C>
struct Adagrad : Step<C> {
  static constexpr int kStates = 1;
  using Param = AdagradParam;
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
  static constexpr int kStates = 2;
  using Param = AdadeltaParam;
  C rho, one_minus_rho, epsilon;
  MXTRAIN_HD Adadelta(const Step<C>& step, const Param& p)
      : Step<C>(step),
        rho(static_cast<C>(p.rho)),
        one_minus_rho(static_cast<C>(1 - p.rho)),
        epsilon(static_cast<C>(p.epsilon)) {}
  MXTRAIN_HD C operator()(C w, C grad, C* s) const {
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

// -1, 0 or 1; NaN of NaN.
template <typename C>
MXTRAIN_HD C SignOf(C x) {
  return x > 0 ? C(1) : x < 0 ? C(-1) : x;
}

template <typename C>
struct SignSgd : Step<C> {
  static constexpr int kStates = 0;
  using Param = SgdParam;
  MXTRAIN_HD SignSgd(const Step<C>& step, const Param&) : Step<C>(step) {}
  MXTRAIN_HD C operator()(C w, C grad, C*) const {
    return (1 - this->lr * this->wd) * w - this->lr * SignOf(this->Gradient(grad));
  }
};

template <typename C>
struct Signum : Step<C> {
  static constexpr int kStates = 1;
  using Param = SignumParam;
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

// 1 - beta^t, the sum of the weights of a decaying mean after t steps.
MXTRAIN_HD inline double SumOfWeights(double beta, double t) {
  return 1 - std::pow(beta, t);
}

template <typename C>
struct Ftml : Step<C> {
  static constexpr int kStates = 3;
  static constexpr bool kKeepsZeros = false;  // d does not
  using Param = FtmlParam;
  C beta1, beta2, one_minus_beta1, one_minus_beta2, epsilon, sum1, sum2;
  MXTRAIN_HD Ftml(const Step<C>& step, const Param& p)
      : Step<C>(step),
        beta1(static_cast<C>(p.beta1)),
        beta2(static_cast<C>(p.beta2)),
        one_minus_beta1(static_cast<C>(1 - p.beta1)),
        one_minus_beta2(static_cast<C>(1 - p.beta2)),
        epsilon(static_cast<C>(p.epsilon)),
        sum1(static_cast<C>(SumOfWeights(p.beta1, static_cast<double>(step.correction)))),
        sum2(static_cast<C>(SumOfWeights(p.beta2, static_cast<double>(step.correction)))) {}
  MXTRAIN_HD bool Skipped() const { return Step<C>::Skipped() || this->lr == 0; }
  // States: d, v, z.
  MXTRAIN_HD C operator()(C w, C grad, C* s) const {
    const C g = this->DecayedGradient(w, grad), before = s[0];
    s[1] = beta2 * s[1] + one_minus_beta2 * g * g;
    s[0] = sum1 / this->lr * (std::sqrt(s[1] / sum2) + epsilon);
    s[2] = beta1 * s[2] + one_minus_beta1 * g - (s[0] - beta1 * before) * w;
    return -s[2] / s[0];
  }
};

template <typename C>
struct Nadam : Step<C> {
  static constexpr int kStates = 2;
  using Param = NadamParam;
  C beta1, beta2, one_minus_beta1, one_minus_beta2, epsilon;
  C of_gradient, of_mean, root;  // factors of the step
  MXTRAIN_HD Nadam(const Step<C>& step, const Param& p)
      : Step<C>(step),
        beta1(static_cast<C>(p.beta1)),
        beta2(static_cast<C>(p.beta2)),
        one_minus_beta1(static_cast<C>(1 - p.beta1)),
        one_minus_beta2(static_cast<C>(1 - p.beta2)),
        epsilon(static_cast<C>(p.epsilon)) {
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
    s[0] = beta1 * s[0] + one_minus_beta1 * g;
    s[1] = beta2 * s[1] + one_minus_beta2 * g * g;
    return w - this->lr * (of_gradient * g + of_mean * s[0]) / (std::sqrt(s[1]) / root + epsilon);
  }

 private:
  static constexpr double kDecay = 0.96, kNothing = 1e-17;
};

template <typename C>
struct Adamax : Step<C> {
  static constexpr int kStates = 2;
  using Param = AdamaxParam;
  C beta1, beta2, one_minus_beta1;
  MXTRAIN_HD Adamax(const Step<C>& step, const Param& p)
      : Step<C>(step),
        beta1(static_cast<C>(p.beta1)),
        beta2(static_cast<C>(p.beta2)),
        one_minus_beta1(static_cast<C>(1 - p.beta1)) {}
  MXTRAIN_HD C operator()(C w, C grad, C* s) const {
    const C g = this->DecayedGradient(w, grad), size = std::abs(g), decayed = beta2 * s[1];
    s[0] = beta1 * s[0] + one_minus_beta1 * g;
    s[1] = decayed > size ? decayed : size;  // NaN of a NaN gradient
    return s[1] == 0 ? w : w - this->lr * this->correction * s[0] / s[1];
  }
};

template <typename C>
struct Lion : Step<C> {
  static constexpr int kStates = 1;
  using Param = LionParam;
  C beta1, beta2, one_minus_beta1, one_minus_beta2;
  MXTRAIN_HD Lion(const Step<C>& step, const Param& p)
      : Step<C>(step),
        beta1(static_cast<C>(p.beta1)),
        beta2(static_cast<C>(p.beta2)),
        one_minus_beta1(static_cast<C>(1 - p.beta1)),
        one_minus_beta2(static_cast<C>(1 - p.beta2)) {}
  MXTRAIN_HD C operator()(C w, C grad, C* m) const {
    const C g = this->Gradient(grad), direction = SignOf(beta1 * *m + one_minus_beta1 * g);
    *m = beta2 * *m + one_minus_beta2 * g;
    return (1 - this->lr * this->wd) * w - this->lr * direction;
  }
};

template <typename C>
struct Dcasgd : Step<C> {
  static constexpr int kStates = 1;
  using Param = DcasgdParam;
  C momentum, lambda;
  MXTRAIN_HD Dcasgd(const Step<C>& step, const Param& p)
      : Step<C>(step), momentum(static_cast<C>(p.momentum)), lambda(static_cast<C>(p.lambda)) {}
  MXTRAIN_HD C operator()(C w, C grad, C* m) const {
    const C g = this->Gradient(grad);
    *m = momentum * *m - this->lr * (g + this->wd * w + lambda * g * g * *m);
    return w + *m;
  }
};

// A rule with Noise(i) adds it to element i.
template <typename C>
struct Sgld : Step<C> {
  static constexpr int kStates = 0;
  static constexpr bool kKeepsZeros = false;
  using Param = SgdParam;
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

// A rule with a `ratio` has a first pass over the array: Measure updates the states and returns the
// number whose norm is needed in addition to that of the weights; Ratio computes the factor of
// operator() from the two norms.
template <typename C>
struct Lamb : Adam<C> {
  using Adam<C>::Adam;
  C ratio = 1;
  MXTRAIN_HD C Measure(C w, C grad, C* s) const {
    this->Move(this->Gradient(grad), s);
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
  static constexpr int kStates = 1;
  using Param = LarsParam;
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

inline constexpr int kMaxStates = 3;

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
  for (int k = 0; k < Rule::kStates; ++k) states[k] = static_cast<C>(a.states[k][i]);
}
template <typename Rule, typename T, typename C>
[[gnu::always_inline]] MXTRAIN_HD inline void StoreStates(const C* states, int64_t i,
                                                          const Arrays<T>& a) {
  for (int k = 0; k < Rule::kStates; ++k) a.states[k][i] = static_cast<T>(states[k]);
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
