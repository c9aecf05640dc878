// SPDX-License-Identifier: Apache-2.0
// Several steps of each optimizer with its default parameters, against its formula in double.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <functional>
#include <future>
#include <memory>

#include "mxtrain/base/format.h"
#include "mxtrain/device/blocked_layout.h"
#include "mxtrain/kvstore/kvstore.h"
#include "tests/support/allocation_count.h"
#include "tests/support/operator_case.h"

namespace mxtrain {
namespace {

using test::Norm;
using test::Values;

constexpr double kDecay = 0.01, kScale = 0.5;

// Arguments of a formula: `s` are up to three states, initially zero; g is scaled.
struct RuleStep {
  int t = 0;  // from 1
  double lr = 0;
  Values w, g;
  std::vector<Values> s;
};
using Rule = std::function<void(RuleStep*)>;

// Of formulas that look at one element: f(w, g, state 0, 1 and 2) gives the new weight.
Rule Each(
    const std::function<double(const RuleStep&, double, double, double*, double*, double*)>& f) {
  return [f](RuleStep* step) {
    for (size_t i = 0; i < step->w.size(); ++i)
      step->w[i] = f(*step, step->w[i], step->g[i], &step->s[0][i], &step->s[1][i], &step->s[2][i]);
  };
}

Values AdamDirection(RuleStep* step, double epsilon) {
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
       Each([](const RuleStep& t, double w, double g, double* m, double*, double*) {
         *m = 0.9 * *m - t.lr * (g + kDecay * w);
         return w + *m;
       })},
      {"adam",
       {},
       0.001,
       [](RuleStep* t) {
         for (size_t i = 0; i < t->w.size(); ++i) t->g[i] += kDecay * t->w[i];
         const Values d = AdamDirection(t, 1e-8);
         for (size_t i = 0; i < d.size(); ++i) t->w[i] -= t->lr * d[i];
       }},
      {"rmsprop",
       {},
       0.001,
       Each([](const RuleStep& t, double w, double g, double* n, double*, double*) {
         g += kDecay * w;
         *n = 0.9 * *n + 0.1 * g * g;
         return w - t.lr * g / std::sqrt(*n + 1e-8);
       })},
      {"rmsprop",
       {{"momentum", "0.9"}},
       0.001,
       Each([](const RuleStep& t, double w, double g, double* n, double* delta, double*) {
         g += kDecay * w;
         *n = 0.9 * *n + 0.1 * g * g;
         *delta = 0.9 * *delta - t.lr * g / std::sqrt(*n + 1e-8);
         return w + *delta;
       })},
      {"rmsprop",
       {{"centered", "True"}, {"momentum", "0.9"}, {"epsilon", "1e-4"}},
       0.001,
       Each([](const RuleStep& t, double w, double g, double* n, double* mean, double* delta) {
         g += kDecay * w;
         *n = 0.9 * *n + 0.1 * g * g;
         *mean = 0.9 * *mean + 0.1 * g;
         *delta = 0.9 * *delta - t.lr * g / std::sqrt(*n - *mean * *mean + 1e-4);
         return w + *delta;
       })},
      {"adagrad",
       {},
       0.01,
       Each([](const RuleStep& t, double w, double g, double* h, double*, double*) {
         *h += g * g;
         return w - t.lr * (g / std::sqrt(*h + 1e-7) + kDecay * w);
       })},
      {"adadelta",
       {},
       1,
       Each([](const RuleStep& t, double w, double g, double* a, double* d, double*) {
         *a = 0.9 * *a + 0.1 * g * g;
         const double delta = g * std::sqrt(*d + 1e-5) / std::sqrt(*a + 1e-5);
         *d = 0.9 * *d + 0.1 * delta * delta;
         return w - t.lr * (delta + kDecay * w);
       })},
      {"ftrl",
       {},
       0.1,
       Each([](const RuleStep& t, double w, double g, double* z, double* n, double*) {
         const double sigma = (std::sqrt(*n + g * g) - std::sqrt(*n)) / t.lr;
         *z += g - sigma * w;
         *n += g * g;
         if (std::abs(*z) <= 0.01) return 0.0;
         return -(*z - std::copysign(0.01, *z)) / ((1 + std::sqrt(*n)) / t.lr + kDecay);
       })},
      {"lamb",
       {},
       0.001,
       [](RuleStep* t) {
         Values r = AdamDirection(t, 1e-6);
         for (size_t i = 0; i < r.size(); ++i) r[i] += kDecay * t->w[i];
         const double trust = Norm(t->w) / Norm(r);
         for (size_t i = 0; i < r.size(); ++i) t->w[i] -= t->lr * trust * r[i];
       }},
      {"lars",
       {{"momentum", "0.9"}},
       0.1,
       [](RuleStep* t) {
         const double local = 0.001 * Norm(t->w) / (Norm(t->g) + kDecay * Norm(t->w));
         for (size_t i = 0; i < t->w.size(); ++i) {
           t->s[0][i] = 0.9 * t->s[0][i] - t->lr * local * (t->g[i] + kDecay * t->w[i]);
           t->w[i] += t->s[0][i];
         }
       }},
      {"signsgd",
       {},
       0.01,
       Each([](const RuleStep& t, double w, double g, double*, double*, double*) {
         return (1 - t.lr * kDecay) * w - t.lr * std::copysign(1, g);
       })},
      {"signum",
       {{"wd_lh", "0.1"}},
       0.01,
       Each([](const RuleStep& t, double w, double g, double* m, double*, double*) {
         *m = 0.9 * *m - 0.1 * (g + kDecay * w);
         return (1 - t.lr * 0.1) * w + t.lr * std::copysign(1, *m);
       })},
      {"ftml",
       {},
       0.01,
       Each([](const RuleStep& t, double w, double g, double* d, double* v, double* z) {
         g += kDecay * w;
         *v = 0.999 * *v + 0.001 * g * g;
         const double now =
             (1 - std::pow(0.6, t.t)) / t.lr * (std::sqrt(*v / (1 - std::pow(0.999, t.t))) + 1e-8);
         *z = 0.6 * *z + 0.4 * g - (now - 0.6 * *d) * w;
         *d = now;
         return -*z / now;
       })},
      // The third state is the product of the momenta.
      {"nadam",
       {},
       0.001,
       Each([](const RuleStep& t, double w, double g, double* m, double* v, double* product) {
         const auto momentum = [](int at) { return 0.9 * (1 - 0.5 * std::pow(0.96, 0.004 * at)); };
         g += kDecay * w;
         *product = (t.t == 1 ? 1 : *product) * momentum(t.t);
         *m = 0.9 * *m + 0.1 * g;
         *v = 0.999 * *v + 0.001 * g * g;
         const double next = momentum(t.t + 1), mean = (1 - momentum(t.t)) * g / (1 - *product) +
                                                       next * *m / (1 - *product * next);
         return w - t.lr * mean / (std::sqrt(*v / (1 - std::pow(0.999, t.t))) + 1e-8);
       })},
      {"adamax",
       {},
       0.002,
       Each([](const RuleStep& t, double w, double g, double* m, double* u, double*) {
         g += kDecay * w;
         *m = 0.9 * *m + 0.1 * g;
         *u = std::max(0.999 * *u, std::abs(g));
         return w - t.lr / (1 - std::pow(0.9, t.t)) * *m / *u;
       })},
      {"lion",
       {},
       0.0001,
       Each([](const RuleStep& t, double w, double g, double* m, double*, double*) {
         const double sign = std::copysign(1, 0.9 * *m + 0.1 * g);
         *m = 0.99 * *m + 0.01 * g;
         return w - t.lr * (sign + kDecay * w);
       })},
      // The second state is the weight before the last update, as in MXNet.
      {"dcasgd",
       {{"momentum", "0.9"}, {"lambda", "0.5"}},
       0.01,
       Each([](const RuleStep& t, double w, double g, double* m, double* before, double*) {
         if (t.t == 1) *before = w;
         *m = 0.9 * *m - t.lr * (g + kDecay * w + 0.5 * g * g * (w - *before));
         *before = w;
         return w + *m;
       })},
      {"group_adagrad",
       {},
       0.01,
       Each([](const RuleStep& t, double w, double g, double* h, double*, double*) {
         *h += g * g;
         return w - t.lr * (g / std::sqrt(*h + 1e-5) + kDecay * w);
       })},
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
    RuleStep step;
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

// The kernels of some rules take plain arrays alone, others any layout.
TEST_CASE("a blocked weight gets the bits of a plain one") {
  Runtime runtime{RuntimeOptions(), BuiltinOperators()};
  const Layout blocked = runtime.backend(Context::cpu()).Intern(BlockedLayout::FromName("aBcd8b"));
  const TShape shape{3, 16, 2, 5};
  std::vector<float> first, gradient;
  for (int64_t i = 0; i < shape.Size(); ++i) {
    first.push_back(static_cast<float>(std::sin(0.7 * static_cast<double>(i))));
    gradient.push_back(static_cast<float>(std::cos(1.3 * static_cast<double>(i)) + 0.1));
  }
  for (const std::string& name : {std::string("sgd"), std::string("sgld"), std::string("ftml"),
                                  std::string("group_adagrad")}) {
    CAPTURE(name);
    const auto weight_after = [&](Layout of_weight, Layout of_grad) {
      NDArray weight = NDArray::FromVector(runtime, shape, first).ToLayout(of_weight);
      const NDArray grad = NDArray::FromVector(runtime, shape, gradient).ToLayout(of_grad);
      OptimizerUpdater updater(runtime, Optimizer::Create(name, {}), {{"weight", {weight}, {1, 1}}},
                               kScale);
      for (int64_t step = 0; step < 3; ++step) {
        updater.BeginStep(step, 0.01);
        const KVStore::KeyUpdate update{0, grad, weight, 0};
        updater.Update({&update, 1});
      }
      CHECK(weight.layout() == of_weight);
      return weight.ToVector();
    };
    const std::vector<float> plain = weight_after({}, {});
    CHECK(plain != first);
    CHECK(weight_after(blocked, blocked) == plain);
    CHECK(weight_after(blocked, {}) == plain);
    CHECK(weight_after({}, blocked) == plain);
  }
}

// As the holder of a key receives gradients of several ranks. Pools grow occasionally, but nothing
// is allocated at every step, nor at every third one.
TEST_CASE("gradients that come in several arrays by turns are updated by calls that are kept") {
  Runtime runtime{RuntimeOptions(), BuiltinOperators()};
  const auto train = [&](int arrays) {
    NDArray weight = NDArray::Zeros(runtime, TShape{4});
    std::vector<NDArray> grads;
    for (int slot = 0; slot < arrays; ++slot)
      grads.push_back(NDArray::FromVector(runtime, TShape{4}, std::vector<float>{1, -2, 3, 0.5F}));
    OptimizerUpdater updater(runtime, Optimizer::Create("adam", {}), {{"weight", {weight}, {1, 1}}},
                             kScale);
    int64_t step = 0;
    const auto run_to = [&](int64_t last) {
      for (; step < last; ++step) {
        const auto slot = static_cast<int>(step % arrays);
        updater.BeginStep(step, 0.01);
        const KVStore::KeyUpdate update{0, grads[static_cast<size_t>(slot)], weight, 0};
        updater.Update({&update, 1}, slot);
        weight.WaitToRead();
      }
    };
    run_to(30);
    const test::AllocationCount count;
    run_to(1000);
    CHECK(count.value() < 300);
    return weight.ToVector();
  };
  CHECK(train(3) == train(1));
}

// A function that still runs keeps the one worker from the updates.
TEST_CASE("an updater may be destroyed by a function of the engine before its updates have run") {
  Runtime runtime{RuntimeOptions(), BuiltinOperators()};
  const auto train = [&runtime](bool destroy) {
    NDArray weight = NDArray::FromVector(runtime, TShape{2}, {1, 2});
    const NDArray grad = NDArray::FromVector(runtime, TShape{2}, {1, -2});
    alignas(OptimizerUpdater) std::array<std::byte, sizeof(OptimizerUpdater)> memory;
    OptimizerUpdater* const updater = std::construct_at(
        reinterpret_cast<OptimizerUpdater*>(memory.data()), runtime, Optimizer::Create("adam", {}),
        std::vector<OptimizerUpdater::Key>{{"weight", {weight}, {1, 1}}}, kScale);
    const auto end = [&] {  // whoever uses it later is seen
      std::destroy_at(updater);
      memory.fill(std::byte{0xff});
    };
    runtime.engine().WaitForAll();
    std::promise<void> open, destroyed;
    runtime.engine().PushSync([&](RunContext) { open.get_future().wait(); }, {}, {}, {});
    for (int step = 0; step < 3; ++step) {
      updater->BeginStep(step, 0.1);
      const KVStore::KeyUpdate update{0, grad, weight, 0};
      updater->Update({&update, 1});
    }
    runtime.engine().PushSync(
        [&](RunContext) {
          if (destroy) end();
          destroyed.set_value();
        },
        {}, {}, {.property = engine::FnProperty::kIO});
    destroyed.get_future().wait();
    open.set_value();
    const std::vector<float> trained = weight.ToVector();
    if (!destroy) end();
    return trained;
  };
  CHECK(train(true) == train(false));
  CHECK_NOTHROW(runtime.engine().WaitForAll());
}

// The noise of one step, with gradients of zero.
std::vector<float> Noise(Runtime& runtime, const std::string& parameter, int64_t step) {
  const std::vector<float> zeros(1000);
  NDArray weight = NDArray::FromVector(runtime, TShape{1000}, zeros),
          grad = NDArray::Zeros(runtime, TShape{1000});
  OptimizerUpdater updater(runtime, Optimizer::Create("sgld", {}), {{parameter, {weight}, {1, 1}}},
                           kScale);
  updater.BeginStep(step, 0.04);
  const KVStore::KeyUpdate update{0, grad, weight, 0};
  updater.Update({&update, 1});
  return weight.ToVector();
}

TEST_CASE("the noise of sgld depends on seed, parameter and step, and on nothing else") {
  RuntimeOptions options;
  options.seed = 7;
  Runtime runtime{options, BuiltinOperators()}, again{options, BuiltinOperators()};
  options.seed = 8;
  Runtime other{options, BuiltinOperators()};
  const std::vector<float> noise = Noise(runtime, "a_weight", 3);
  double square = 0;
  for (float v : noise) square += static_cast<double>(v) * static_cast<double>(v) / 1000;
  CHECK(square == doctest::Approx(0.04).epsilon(0.2));  // 4.5 standard errors
  CHECK(Noise(runtime, "a_weight", 3) == noise);
  CHECK(Noise(again, "a_weight", 3) == noise);
  CHECK(Noise(runtime, "a_weight", 4) != noise);
  CHECK(Noise(runtime, "b_weight", 3) != noise);
  CHECK(Noise(other, "a_weight", 3) != noise);
}

}  // namespace
}  // namespace mxtrain
