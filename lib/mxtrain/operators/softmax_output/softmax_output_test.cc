// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "mxtrain/base/format.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

struct SoftmaxOutputOptions {
  double scale = 1, ignore = -1, alpha = 0;
  bool multi = false, use_ignore = false, out_grad = false;
  std::string normalization = "null";
};

// The reference rules, on data viewed as [outer, classes, inner].
Values Probabilities(const Values& x, int64_t outer, int64_t classes, int64_t inner) {
  Values p(x.size());
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      double sum = 0;
      for (int64_t k = 0; k < classes; ++k) sum += std::exp(x[(o * classes + k) * inner + i]);
      for (int64_t k = 0; k < classes; ++k)
        p[(o * classes + k) * inner + i] = std::exp(x[(o * classes + k) * inner + i]) / sum;
    }
  }
  return p;
}

Values Gradient(Values p, const Values& label, const Values& head, int64_t outer, int64_t classes,
                int64_t inner, const SoftmaxOutputOptions& opt) {
  double divisor = opt.multi ? static_cast<double>(inner) : 1;
  if (opt.normalization == "batch") divisor = static_cast<double>(label.size());
  if (opt.normalization == "valid") {
    divisor = 0;
    for (const double l : label) divisor += l != opt.ignore;
    divisor = std::max(divisor, 1.0);
  }
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      const double l = label[o * inner + i];
      for (int64_t k = 0; k < classes; ++k) {
        const int64_t at = (o * classes + k) * inner + i;
        const bool hit = k == static_cast<int64_t>(l);
        double g = p[at] - (hit ? 1 : 0);
        if (!opt.multi && opt.alpha > 0)
          g += hit ? opt.alpha : -opt.alpha / static_cast<double>(classes - 1);
        if (opt.use_ignore && l == opt.ignore) g = 0;
        p[at] = g * opt.scale / divisor * (opt.out_grad ? head[at] : 1);
      }
    }
  }
  return p;
}

struct ClassView {
  int64_t outer, classes, inner;
};

OperatorCase SoftmaxOutputCase(const std::string& name, const Kwargs& kwargs, const TShape& data,
                               const TShape& label, const ClassView& v,
                               const SoftmaxOutputOptions& opt) {
  OperatorCase c;
  c.name = "SoftmaxOutput " + name;
  c.op = "SoftmaxOutput";
  c.kwargs = kwargs;
  c.shapes = {data, label};
  c.inputs = {Uniform(-3, 3), Labels(v.classes)};
  c.forward = [=](const Arrays& in, const Arrays&) {
    return Arrays{Probabilities(in[0], v.outer, v.classes, v.inner)};
  };
  c.gradient = [=](const Arrays& in, const Arrays&, const Arrays& head) {
    const Values p = Probabilities(in[0], v.outer, v.classes, v.inner);
    return Arrays{Gradient(p, in[1], head[0], v.outer, v.classes, v.inner, opt), {}};
  };
  c.types = kAllFloatingTypes;
  c.tolerance = {16, "exponentials, and a sum over the classes"};
  if (!opt.out_grad && label != data) c.must_accept = {"simd"};
  return c;
}

TEST_CASE("SoftmaxOutput: one label per sample") {
  for (const auto& [n, k] :
       {std::pair<int64_t, int64_t>{1, 1}, {7, 3}, {5, 37}, {0, 4}, {64, 10}, {3, 1000}}) {
    RunCase(SoftmaxOutputCase(format("[{}, {}]", n, k), {}, {n, k}, TShape{n}, {n, k, 1}, {}));
  }
  RunCase(SoftmaxOutputCase("batch", {{"normalization", "batch"}, {"grad_scale", "2"}}, {6, 5},
                            TShape{6}, {6, 5, 1}, {.scale = 2, .normalization = "batch"}));
  RunCase(SoftmaxOutputCase("trailing ones", {}, {6, 5, 1, 1}, TShape{6}, {6, 5, 1}, {}));
}

TEST_CASE("SoftmaxOutput: ignored labels") {
  const Kwargs base = {{"ignore_label", "2"}};
  const auto with = [&](const Kwargs& more) {
    Kwargs kwargs = base;
    kwargs.insert(kwargs.end(), more.begin(), more.end());
    return kwargs;
  };
  RunCase(SoftmaxOutputCase("ignore", with({{"use_ignore", "True"}}), {40, 5}, TShape{40},
                            {40, 5, 1}, {.ignore = 2, .use_ignore = true}));
  RunCase(SoftmaxOutputCase("valid", with({{"use_ignore", "1"}, {"normalization", "valid"}}),
                            {40, 5}, TShape{40}, {40, 5, 1},
                            {.ignore = 2, .use_ignore = true, .normalization = "valid"}));
  // `valid` counts with ignore_label even if use_ignore is off.
  RunCase(SoftmaxOutputCase("valid, not ignored", with({{"normalization", "valid"}}), {40, 5},
                            TShape{40}, {40, 5, 1}, {.ignore = 2, .normalization = "valid"}));
}

TEST_CASE("SoftmaxOutput: smoothing, and a label outside the classes") {
  RunCase(SoftmaxOutputCase("smooth", {{"smooth_alpha", "0.25"}}, {9, 5}, TShape{9}, {9, 5, 1},
                            {.alpha = 0.25}));
  RunCase(SoftmaxOutputCase("multi_output is not smoothed",
                            {{"smooth_alpha", "0.25"}, {"multi_output", "true"}}, {2, 5, 3}, {2, 3},
                            {2, 5, 3}, {.alpha = 0.25, .multi = true}));
  OperatorCase c = SoftmaxOutputCase("outside", {}, {3, 4}, TShape{3}, {3, 4, 1}, {});
  c.inputs = {Uniform(-1, 1), Cycle({-1, 4, 1})};
  RunCase(c);
}

TEST_CASE("SoftmaxOutput: preserve_shape and multi_output") {
  RunCase(SoftmaxOutputCase("preserve", {{"preserve_shape", "True"}}, {2, 3, 5}, {2, 3}, {6, 5, 1},
                            {}));
  for (const char* normalization : {"null", "batch", "valid"}) {
    const SoftmaxOutputOptions opt{
        .ignore = 1, .multi = true, .use_ignore = true, .normalization = normalization};
    const Kwargs kwargs = {{"multi_output", "True"},
                           {"normalization", normalization},
                           {"use_ignore", "True"},
                           {"ignore_label", "1"}};
    RunCase(SoftmaxOutputCase(format("multi_output {}", normalization), kwargs, {3, 4, 5, 7},
                              {3, 35}, {3, 4, 35}, opt));
    RunCase(SoftmaxOutputCase(format("multi_output {}, label as an image", normalization), kwargs,
                              {3, 4, 5, 7}, {3, 5, 7}, {3, 4, 35}, opt));
    RunCase(SoftmaxOutputCase(format("multi_output {}, label with an axis of one", normalization),
                              kwargs, {3, 4, 5, 7}, {3, 1, 5, 7}, {3, 4, 35}, opt));
  }
}

TEST_CASE("SoftmaxOutput: pieces for several threads and blocks") {
  RunCase(SoftmaxOutputCase("many rows", {}, {1201, 7}, TShape{1201}, {1201, 7, 1}, {}));
  RunCase(SoftmaxOutputCase("many positions", {{"multi_output", "True"}}, {2, 3, 61, 73},
                            {2, 61 * 73}, {2, 3, 61 * 73}, {.multi = true}));
}

TEST_CASE("SoftmaxOutput: out_grad multiplies by the head gradient") {
  RunCase(SoftmaxOutputCase("out_grad", {{"out_grad", "True"}}, {5, 4}, TShape{5}, {5, 4, 1},
                            {.out_grad = true}));
  CHECK(TestRegistry().Create("SoftmaxOutput", {{"out_grad", "1"}})->NeedsHeadGradient());
  CHECK(!TestRegistry().Create("SoftmaxOutput", {})->NeedsHeadGradient());
}

TEST_CASE("SoftmaxOutput: no normalization, ignoring or smoothing for probabilities as labels") {
  OperatorCase c = SoftmaxOutputCase("probabilities",
                                     {{"normalization", "batch"},
                                      {"grad_scale", "3"},
                                      {"smooth_alpha", "0.5"},
                                      {"use_ignore", "1"}},
                                     {4, 5}, {4, 5}, {4, 5, 1}, {});
  c.inputs = {Uniform(-2, 2), Uniform(0, 1)};
  c.gradient = [](const Arrays& in, const Arrays&, const Arrays&) {
    return Arrays{
        Apply(Probabilities(in[0], 4, 5, 1), in[1], [](double p, double l) { return 3 * (p - l); }),
        {}};
  };
  RunCase(c);
}

// sum_k t_k w_k (1 - p_k)^gamma (-log p_k) over all softmaxes; t is [outer, classes, inner].
double WeightedLoss(const Values& x, const Values& t, const Values& weights, double gamma,
                    const ClassView& v) {
  const Values p = Probabilities(x, v.outer, v.classes, v.inner);
  double loss = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    const size_t k = i / static_cast<size_t>(v.inner) % static_cast<size_t>(v.classes);
    loss -= t[i] * (weights.empty() ? 1 : weights[k]) * std::pow(1 - p[i], gamma) * std::log(p[i]);
  }
  return loss;
}

// Class indices as distributions; ignored positions have none.
Values Targets(const Values& label, const ClassView& v, const SoftmaxOutputOptions& opt) {
  Values t(static_cast<size_t>(v.outer * v.classes * v.inner));
  const double smooth = opt.multi ? 0 : opt.alpha;
  for (size_t i = 0; i < t.size(); ++i) {
    const auto inner = static_cast<int64_t>(i) % v.inner,
               k = static_cast<int64_t>(i) / v.inner % v.classes;
    const double l =
        label[static_cast<size_t>(static_cast<int64_t>(i) / v.inner / v.classes * v.inner + inner)];
    t[i] = k == static_cast<int64_t>(l) ? 1 - smooth : smooth / static_cast<double>(v.classes - 1);
    if (opt.use_ignore && l == opt.ignore) t[i] = 0;
  }
  return t;
}

// The gradient by central differences of the loss in double.
OperatorCase WeightedCase(const std::string& name, Kwargs kwargs, const TShape& data,
                          const TShape& label, const ClassView& v, const SoftmaxOutputOptions& opt,
                          const Values& weights, double gamma, double divisor = 1) {
  std::vector<double> listed(weights.begin(), weights.end());
  if (!weights.empty()) kwargs.emplace_back("class_weights", params::Print(listed));
  if (gamma > 0) kwargs.emplace_back("focal_gamma", params::Print(gamma));
  OperatorCase c = SoftmaxOutputCase(name, kwargs, data, label, v, opt);
  c.gradient = [=](const Arrays& in, const Arrays&, const Arrays& head) {
    const Values t = label == data ? in[1] : Targets(in[1], v, opt);
    Values x = in[0], gradient(x.size());
    constexpr double kStep = 1e-5;
    for (size_t i = 0; i < x.size(); ++i) {
      const double at = x[i];
      x[i] = at + kStep;
      const double above = WeightedLoss(x, t, weights, gamma, v);
      x[i] = at - kStep;
      gradient[i] = (above - WeightedLoss(x, t, weights, gamma, v)) / (2 * kStep) * opt.scale /
                    divisor * (opt.out_grad ? head[0][i] : 1);
      x[i] = at;
    }
    return Arrays{gradient, {}};
  };
  c.must_accept = {};
  // Central differences are accurate to ten digits, not to those of float64.
  c.types = {DType::kFloat32, DType::kFloat16, DType::kBfloat16};
  c.tolerance = {64, "exponentials, logarithms and powers of them"};
  return c;
}

TEST_CASE("SoftmaxOutput: weights of classes and focal loss are the gradient of their loss") {
  const Values weights = {0.5, 2, 0, 1, 3};
  for (const double gamma : {0.0, 0.5, 1.0, 2.0, 5.0}) {
    for (const Values& w : {weights, Values{}}) {
      if (gamma == 0 && w.empty()) continue;
      const std::string name = format("gamma {}, {} weights", gamma, w.size());
      RunCase(WeightedCase(name, {}, {9, 5}, TShape{9}, {9, 5, 1}, {}, w, gamma));
      RunCase(WeightedCase(name + ", smoothed", {{"smooth_alpha", "0.25"}}, {9, 5}, TShape{9},
                           {9, 5, 1}, {.alpha = 0.25}, w, gamma));
      OperatorCase c = WeightedCase(name + ", distributions", {{"grad_scale", "3"}}, {9, 5}, {9, 5},
                                    {9, 5, 1}, {.scale = 3}, w, gamma);
      c.inputs = {Uniform(-2, 2), Uniform(0, 0.4)};
      RunCase(c);
    }
  }
  const SoftmaxOutputOptions ignoring{.ignore = 2, .use_ignore = true};
  RunCase(WeightedCase("ignored", {{"use_ignore", "1"}, {"ignore_label", "2"}}, {20, 5}, TShape{20},
                       {20, 5, 1}, ignoring, weights, 2));
  // Divisors count labels, not weights.
  RunCase(WeightedCase("batch", {{"normalization", "batch"}}, {8, 5}, TShape{8}, {8, 5, 1}, {},
                       weights, 2, 8));
  RunCase(WeightedCase("positions", {{"multi_output", "1"}, {"smooth_alpha", "0.5"}}, {2, 5, 3, 2},
                       {2, 6}, {2, 5, 6}, {.alpha = 0.5, .multi = true}, weights, 2, 6));
  RunCase(WeightedCase("last axis", {{"preserve_shape", "1"}}, {2, 3, 5}, {2, 3}, {6, 5, 1}, {},
                       weights, 2));
  RunCase(WeightedCase("head gradient", {{"out_grad", "1"}}, {6, 5}, TShape{6}, {6, 5, 1},
                       {.out_grad = true}, weights, 2));
}

// At probabilities of 0 or 1 in float the formula has limits.
TEST_CASE("SoftmaxOutput: focal loss of certain answers") {
  OperatorCase c = WeightedCase("certain", {}, {2, 2}, TShape{2}, {2, 2, 1}, {}, {}, 0.5);
  c.inputs = {Cycle({200, -200, 200, -200}), Cycle({0, 1})};
  // Right: zero gradient. Wrong: that of the cross-entropy.
  c.gradient = [](const Arrays&, const Arrays&, const Arrays&) {
    return Arrays{{0, 0, 1, -1}, {}};
  };
  c.forward = [](const Arrays&, const Arrays&) { return Arrays{{1, 0, 1, 0}}; };
  RunCase(c);
}

TEST_CASE("SoftmaxOutput: invalid weights, and files of MXNet") {
  CHECK_THROWS_WITH_AS(TestRegistry().Create("SoftmaxOutput", {{"class_weights", "(1, -2)"}}),
                       "SoftmaxOutput: class_weights = '(1, -2)': expected numbers of 0 or more",
                       Error);
  std::vector<TShape> in = {{4, 3}, {}}, out = {{}}, aux;
  CHECK_THROWS_WITH_AS(
      TestRegistry()
          .Create("SoftmaxOutput", {{"class_weights", "(1, 2)"}})
          ->InferShape(&in, &out, &aux),
      "SoftmaxOutput: class_weights has 2 numbers, but the data of shape [4, 3] have 3 classes",
      Error);
  const auto has = [](const Kwargs& given, const std::string& key) {
    const Kwargs params = TestRegistry().Create("SoftmaxOutput", given)->GetParams();
    return std::any_of(params.begin(), params.end(),
                       [&](const auto& item) { return item.first == key; });
  };
  CHECK(!has({}, "class_weights"));
  CHECK(!has({}, "focal_gamma"));
  CHECK(has({{"class_weights", "(1, 2)"}}, "class_weights"));
  CHECK(has({{"focal_gamma", "2"}}, "focal_gamma"));
}

TEST_CASE("SoftmaxOutput: labels of other types") {
  for (const DType type : {DType::kInt32, DType::kInt64, DType::kUint8, DType::kFloat32}) {
    OperatorCase c = SoftmaxOutputCase("labels", {}, {7, 3}, TShape{7}, {7, 3, 1}, {});
    c.input_types = {DType::kUnknown, type};
    RunCase(c);
  }
}

TEST_CASE("SoftmaxOutput: the output has the type of the data") {
  std::vector<DType> in{DType::kFloat16, DType::kUnknown}, out{DType::kFloat32}, aux;
  const auto op = TestRegistry().Create("SoftmaxOutput", {});
  CHECK_THROWS_WITH_AS(op->InferType(&in, &out, &aux),
                       "SoftmaxOutput: output is float32, but float16 was expected", Error);
}

TEST_CASE("SoftmaxOutput: worked numbers") {
  const Values p = {.090031, .244728, .665241, 1. / 3, 1. / 3, 1. / 3, .106507, .786986, .106507};
  const std::vector<std::pair<std::string, Values>> cases = {
      {"null", {.090031, .244728, -.334759, 0, 0, 0, -.893493, .786986, .106507}},
      {"batch", {.030010, .081576, -.111586, 0, 0, 0, -.297831, .262329, .035502}},
      {"valid", {.045015, .122364, -.167380, 0, 0, 0, -.446747, .393493, .053253}}};
  for (const auto& [normalization, gradient] : cases) {
    OperatorCase c;
    c.name = "worked numbers, " + normalization;
    c.op = "Softmax";
    c.kwargs = {{"use_ignore", "True"}, {"ignore_label", "-1"}, {"normalization", normalization}};
    c.shapes = {{3, 3}, TShape{3}};
    c.inputs = {Cycle({1, 2, 3, 1, 1, 1, 0, 2, 0}), Cycle({2, -1, 0})};
    c.forward = [&](const Arrays&, const Arrays&) { return Arrays{p}; };
    c.gradient = [&, g = gradient](const Arrays&, const Arrays&, const Arrays&) {
      return Arrays{g, {}};
    };
    c.types = {DType::kFloat32};
    c.tolerance = {10, "six digits of the worked numbers"};
    RunCase(c);
  }
}

TEST_CASE("SoftmaxOutput: shapes") {
  const auto infer = [](const Kwargs& kwargs, TShape data, TShape label, TShape out) {
    std::vector<TShape> in = {data, label}, outs = {out}, aux;
    const bool known = TestRegistry().Create("SoftmaxOutput", kwargs)->InferShape(&in, &outs, &aux);
    CHECK(known);
    CHECK(in[0] == outs[0]);
    return in;
  };
  CHECK(infer({}, {32, 10}, {}, {})[1] == TShape{32});
  CHECK(infer({}, {-1, 10}, TShape{32}, {})[0] == TShape{32, 10});
  CHECK(infer({}, {}, {}, {32, 10})[0] == TShape{32, 10});
  CHECK(infer({{"preserve_shape", "1"}}, {4, 6, 10}, {}, {})[1] == TShape{4, 6});
  CHECK(infer({{"multi_output", "1"}}, {4, 10, 3, 5}, {}, {})[1] == TShape{4, 15});
  CHECK_THROWS_WITH_AS(
      infer({}, {32, 10}, TShape{31}, {}),
      "SoftmaxOutput: label has shape [31], but [32] was expected for data of shape [32, 10]",
      Error);
  CHECK_THROWS_WITH_AS(infer({}, {4, 10, 3}, {}, {}), doctest::Contains("set multi_output"), Error);
  CHECK_THROWS_AS(
      TestRegistry().Create("SoftmaxOutput", {{"multi_output", "1"}, {"preserve_shape", "1"}}),
      Error);
}

}  // namespace
}  // namespace mxtrain::test
