// SPDX-License-Identifier: Apache-2.0
// Several steps of each optimizer with its default parameters, against its formula in double.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "mxtrain/base/format.h"
#include "mxtrain/kvstore/kvstore.h"
#include "tests/support/operator_case.h"

namespace mxtrain {
namespace {

using test::Norm;
using test::Values;

constexpr double kDecay = 0.01, kScale = 0.5;

// Arguments of a formula: `s` are up to three states, initially zero; g is scaled.
struct Step {
  int t = 0;  // from 1
  double lr = 0;
  Values w, g;
  std::vector<Values> s;
};
using Rule = std::function<void(Step*)>;

// Of formulas that look at one element: f(w, g, state 0, 1 and 2) gives the new weight.
Rule Each(const std::function<double(const Step&, double, double, double*, double*, double*)>& f) {
  return [f](Step* step) {
    for (size_t i = 0; i < step->w.size(); ++i)
      step->w[i] = f(*step, step->w[i], step->g[i], &step->s[0][i], &step->s[1][i], &step->s[2][i]);
  };
}

Values AdamDirection(Step* step, double epsilon) {
  Values d;
  const double c1 = 1 - std::pow(0.9, step->t), c2 = 1 - std::pow(0.999, step->t);
  for (size_t i = 0; i < step->w.size(); ++i) {
    double& m = step->s[0][i] = 0.9 * step->s[0][i] + 0.1 * step->g[i];
    double& v = step->s[1][i] = 0.999 * step->s[1][i] + 0.001 * step->g[i] * step->g[i];
    // Kingma and Ba's second form: epsilon is added to the root that is not corrected.
    d.push_back(m / c1 * std::sqrt(c2) / (std::sqrt(v) + epsilon));
  }
  return d;
}

struct Known {
  std::string name;
  Kwargs kwargs;
  double lr;  // base
  Rule rule;
};

std::vector<Known> AllKnown() {
  return {
      {"sgd",
       {{"momentum", "0.9"}},
       0.01,
       Each([](const Step& t, double w, double g, double* m, double*, double*) {
         *m = 0.9 * *m - t.lr * (g + kDecay * w);
         return w + *m;
       })},
      {"adam",
       {},
       0.001,
       [](Step* t) {
         for (size_t i = 0; i < t->w.size(); ++i) t->g[i] += kDecay * t->w[i];
         const Values d = AdamDirection(t, 1e-8);
         for (size_t i = 0; i < d.size(); ++i) t->w[i] -= t->lr * d[i];
       }},
      {"rmsprop",
       {},
       0.001,
       Each([](const Step& t, double w, double g, double* n, double*, double*) {
         g += kDecay * w;
         *n = 0.9 * *n + 0.1 * g * g;
         return w - t.lr * g / std::sqrt(*n + 1e-8);
       })},
      {"rmsprop",
       {{"momentum", "0.9"}},
       0.001,
       Each([](const Step& t, double w, double g, double* n, double* delta, double*) {
         g += kDecay * w;
         *n = 0.9 * *n + 0.1 * g * g;
         *delta = 0.9 * *delta - t.lr * g / std::sqrt(*n + 1e-8);
         return w + *delta;
       })},
      {"rmsprop",
       {{"centered", "True"}, {"momentum", "0.9"}, {"epsilon", "1e-4"}},
       0.001,
       Each([](const Step& t, double w, double g, double* n, double* mean, double* delta) {
         g += kDecay * w;
         *n = 0.9 * *n + 0.1 * g * g;
         *mean = 0.9 * *mean + 0.1 * g;
         *delta = 0.9 * *delta - t.lr * g / std::sqrt(*n - *mean * *mean + 1e-4);
         return w + *delta;
       })},
      {"adagrad",
       {},
       0.01,
       Each([](const Step& t, double w, double g, double* h, double*, double*) {
         *h += g * g;
         return w - t.lr * (g / std::sqrt(*h + 1e-7) + kDecay * w);
       })},
      {"adadelta",
       {},
       1,
       Each([](const Step& t, double w, double g, double* a, double* d, double*) {
         *a = 0.9 * *a + 0.1 * g * g;
         const double delta = g * std::sqrt(*d + 1e-5) / std::sqrt(*a + 1e-5);
         *d = 0.9 * *d + 0.1 * delta * delta;
         return w - t.lr * (delta + kDecay * w);
       })},
      {"ftrl", {}, 0.1, Each([](const Step& t, double w, double g, double* z, double* n, double*) {
         const double sigma = (std::sqrt(*n + g * g) - std::sqrt(*n)) / t.lr;
         *z += g - sigma * w;
         *n += g * g;
         if (std::abs(*z) <= 0.01) return 0.0;
         return -(*z - std::copysign(0.01, *z)) / ((1 + std::sqrt(*n)) / t.lr + kDecay);
       })},
      {"lamb",
       {},
       0.001,
       [](Step* t) {
         Values r = AdamDirection(t, 1e-6);
         for (size_t i = 0; i < r.size(); ++i) r[i] += kDecay * t->w[i];
         const double trust = Norm(t->w) / Norm(r);
         for (size_t i = 0; i < r.size(); ++i) t->w[i] -= t->lr * trust * r[i];
       }},
      {"lars",
       {{"momentum", "0.9"}},
       0.1,
       [](Step* t) {
         const double local = 0.001 * Norm(t->w) / (Norm(t->g) + kDecay * Norm(t->w));
         for (size_t i = 0; i < t->w.size(); ++i) {
           t->s[0][i] = 0.9 * t->s[0][i] - t->lr * local * (t->g[i] + kDecay * t->w[i]);
           t->w[i] += t->s[0][i];
         }
       }},
  };
}

TEST_CASE("six steps of each optimizer follow its formula") {
  Runtime runtime{RuntimeOptions(), BuiltinOperators()};
  const std::vector<float> first = {0.5f, -1.25f, 2.f, 0.03125f};
  for (const Known& known : AllKnown()) {
    CAPTURE(known.name);
    Kwargs kwargs = known.kwargs;
    kwargs.emplace_back("weight_decay", format("{}", kDecay));
    auto optimizer = Optimizer::Create(known.name, kwargs);
    CHECK(optimizer->base_lr() == known.lr);
    NDArray weight = NDArray::FromVector(runtime, TShape{4}, first),
            grad = NDArray::Zeros(runtime, TShape{4});
    OptimizerUpdater updater(runtime, std::move(optimizer), {{"fc_weight", {weight}, {1, 1}}},
                             kScale);
    Step step;
    step.w.assign(first.begin(), first.end());
    step.s.assign(3, Values(4, 0));
    for (step.t = 1; step.t <= 6; ++step.t) {
      CAPTURE(step.t);
      std::vector<float> g;
      for (int i = 0; i < 4; ++i) g.push_back(static_cast<float>(std::sin(3.0 * i + step.t) + 0.2));
      grad.CopyFromHost(g.data(), 4 * sizeof(float));
      step.lr = known.name == "ftrl" ? known.lr : known.lr * (1 - 0.1 * step.t);
      step.g.clear();
      for (float v : g) step.g.push_back(kScale * static_cast<double>(v));
      updater.BeginStep(step.t - 1, step.lr);
      const KVStore::KeyUpdate update{0, grad, weight, 0};
      updater.Update({&update, 1});
      known.rule(&step);
      const std::vector<float> now = weight.ToVector();
      for (size_t i = 0; i < now.size(); ++i)
        CHECK(static_cast<double>(now[i]) == doctest::Approx(step.w[i]).epsilon(2e-5));
    }
  }
}

}  // namespace
}  // namespace mxtrain
