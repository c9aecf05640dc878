#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "mxtrain/base/format.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

struct Options {
  double scale = 1, ignore = -1, alpha = 0;
  bool multi = false, use_ignore = false, out_grad = false;
  std::string normalization = "null";
};

// The rules of the reference, on data seen as [outer, classes, inner].
Values Probabilities(const Values& x, int64_t outer, int64_t classes, int64_t inner) {
  Values p(x.size());
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      double sum = 0;
      for (int64_t k = 0; k < classes; ++k) sum += std::exp(x[(o * classes + k) * inner + i]);
      for (int64_t k = 0; k < classes; ++k) p[(o * classes + k) * inner + i] = std::exp(x[(o * classes + k) * inner + i]) / sum;
    }
  }
  return p;
}

Values Gradient(Values p, const Values& label, const Values& head, int64_t outer, int64_t classes, int64_t inner, const Options& opt) {
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
        if (!opt.multi && opt.alpha > 0) g += hit ? opt.alpha : -opt.alpha / static_cast<double>(classes - 1);
        if (opt.use_ignore && l == opt.ignore) g = 0;
        p[at] = g * opt.scale / divisor * (opt.out_grad ? head[at] : 1);
      }
    }
  }
  return p;
}

struct View {
  int64_t outer, classes, inner;
};

OperatorCase Case(const std::string& name, const Kwargs& kwargs, const TShape& data, const TShape& label, const View& v,
                  const Options& opt) {
  OperatorCase c;
  c.name = "SoftmaxOutput " + name;
  c.op = "SoftmaxOutput";
  c.kwargs = kwargs;
  c.shapes = {data, label};
  c.inputs = {Uniform(-3, 3), Labels(v.classes)};
  c.forward = [=](const Arrays& in, const Arrays&) { return Arrays{Probabilities(in[0], v.outer, v.classes, v.inner)}; };
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
  for (const auto& [n, k] : {std::pair<int64_t, int64_t>{1, 1}, {7, 3}, {5, 37}, {0, 4}, {64, 10}, {3, 1000}}) {
    RunCase(Case(format("[{}, {}]", n, k), {}, {n, k}, TShape{n}, {n, k, 1}, {}));
  }
  RunCase(Case("batch", {{"normalization", "batch"}, {"grad_scale", "2"}}, {6, 5}, TShape{6}, {6, 5, 1},
               {.scale = 2, .normalization = "batch"}));
  RunCase(Case("trailing ones", {}, {6, 5, 1, 1}, TShape{6}, {6, 5, 1}, {}));
}

TEST_CASE("SoftmaxOutput: ignored labels") {
  const Kwargs base = {{"ignore_label", "2"}};
  const auto with = [&](const Kwargs& more) {
    Kwargs kwargs = base;
    kwargs.insert(kwargs.end(), more.begin(), more.end());
    return kwargs;
  };
  RunCase(Case("ignore", with({{"use_ignore", "True"}}), {40, 5}, TShape{40}, {40, 5, 1}, {.ignore = 2, .use_ignore = true}));
  RunCase(Case("valid", with({{"use_ignore", "1"}, {"normalization", "valid"}}), {40, 5}, TShape{40}, {40, 5, 1},
               {.ignore = 2, .use_ignore = true, .normalization = "valid"}));
  // `valid` counts with ignore_label even where use_ignore is off.
  RunCase(Case("valid, not ignored", with({{"normalization", "valid"}}), {40, 5}, TShape{40}, {40, 5, 1},
               {.ignore = 2, .normalization = "valid"}));
}

TEST_CASE("SoftmaxOutput: smoothing, and a label outside of the classes") {
  RunCase(Case("smooth", {{"smooth_alpha", "0.25"}}, {9, 5}, TShape{9}, {9, 5, 1}, {.alpha = 0.25}));
  RunCase(Case("multi_output is not smoothed", {{"smooth_alpha", "0.25"}, {"multi_output", "true"}}, {2, 5, 3}, {2, 3}, {2, 5, 3},
               {.alpha = 0.25, .multi = true}));
  OperatorCase c = Case("outside", {}, {3, 4}, TShape{3}, {3, 4, 1}, {});
  c.inputs = {Uniform(-1, 1), Cycle({-1, 4, 1})};
  RunCase(c);
}

TEST_CASE("SoftmaxOutput: preserve_shape and multi_output") {
  RunCase(Case("preserve", {{"preserve_shape", "True"}}, {2, 3, 5}, {2, 3}, {6, 5, 1}, {}));
  for (const char* normalization : {"null", "batch", "valid"}) {
    const Options opt{.ignore = 1, .multi = true, .use_ignore = true, .normalization = normalization};
    const Kwargs kwargs = {{"multi_output", "True"}, {"normalization", normalization}, {"use_ignore", "True"}, {"ignore_label", "1"}};
    RunCase(Case(format("multi_output {}", normalization), kwargs, {3, 4, 5, 7}, {3, 35}, {3, 4, 35}, opt));
    RunCase(Case(format("multi_output {}, label as an image", normalization), kwargs, {3, 4, 5, 7}, {3, 5, 7}, {3, 4, 35}, opt));
    RunCase(Case(format("multi_output {}, label with an axis of one", normalization), kwargs, {3, 4, 5, 7}, {3, 1, 5, 7}, {3, 4, 35}, opt));
  }
}

TEST_CASE("SoftmaxOutput: pieces for several threads and blocks") {
  RunCase(Case("many rows", {}, {1201, 7}, TShape{1201}, {1201, 7, 1}, {}));
  RunCase(Case("many positions", {{"multi_output", "True"}}, {2, 3, 61, 73}, {2, 61 * 73}, {2, 3, 61 * 73}, {.multi = true}));
}

TEST_CASE("SoftmaxOutput: out_grad multiplies by the head gradient") {
  RunCase(Case("out_grad", {{"out_grad", "True"}}, {5, 4}, TShape{5}, {5, 4, 1}, {.out_grad = true}));
  CHECK(TestRegistry().Create("SoftmaxOutput", {{"out_grad", "1"}})->NeedsHeadGradient());
  CHECK(!TestRegistry().Create("SoftmaxOutput", {})->NeedsHeadGradient());
}

TEST_CASE("SoftmaxOutput: probabilities as labels know no normalization, ignoring or smoothing") {
  OperatorCase c = Case("probabilities", {{"normalization", "batch"}, {"grad_scale", "3"}, {"smooth_alpha", "0.5"}, {"use_ignore", "1"}},
                        {4, 5}, {4, 5}, {4, 5, 1}, {});
  c.inputs = {Uniform(-2, 2), Uniform(0, 1)};
  c.gradient = [](const Arrays& in, const Arrays&, const Arrays&) {
    return Arrays{Apply(Probabilities(in[0], 4, 5, 1), in[1], [](double p, double l) { return 3 * (p - l); }), {}};
  };
  RunCase(c);
}

TEST_CASE("SoftmaxOutput: labels of other types") {
  for (const DType type : {DType::kInt32, DType::kInt64, DType::kUint8, DType::kFloat32}) {
    OperatorCase c = Case("labels", {}, {7, 3}, TShape{7}, {7, 3, 1}, {});
    c.input_types = {DType::kUnknown, type};
    RunCase(c);
  }
}

TEST_CASE("SoftmaxOutput: worked numbers") {
  const Values p = {.090031, .244728, .665241, 1. / 3, 1. / 3, 1. / 3, .106507, .786986, .106507};
  const std::vector<std::pair<std::string, Values>> rows = {{"null", {.090031, .244728, -.334759, 0, 0, 0, -.893493, .786986, .106507}},
                                                            {"batch", {.030010, .081576, -.111586, 0, 0, 0, -.297831, .262329, .035502}},
                                                            {"valid", {.045015, .122364, -.167380, 0, 0, 0, -.446747, .393493, .053253}}};
  for (const auto& [normalization, gradient] : rows) {
    OperatorCase c;
    c.name = "worked numbers, " + normalization;
    c.op = "Softmax";
    c.kwargs = {{"use_ignore", "True"}, {"ignore_label", "-1"}, {"normalization", normalization}};
    c.shapes = {{3, 3}, TShape{3}};
    c.inputs = {Cycle({1, 2, 3, 1, 1, 1, 0, 2, 0}), Cycle({2, -1, 0})};
    c.forward = [&](const Arrays&, const Arrays&) { return Arrays{p}; };
    c.gradient = [&, g = gradient](const Arrays&, const Arrays&, const Arrays&) { return Arrays{g, {}}; };
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
  CHECK_THROWS_WITH_AS(infer({}, {32, 10}, TShape{31}, {}),
                       "SoftmaxOutput: label has shape [31], but [32] was expected for data of shape [32, 10]", Error);
  CHECK_THROWS_WITH_AS(infer({}, {4, 10, 3}, {}, {}), doctest::Contains("set multi_output"), Error);
  CHECK_THROWS_AS(TestRegistry().Create("SoftmaxOutput", {{"multi_output", "1"}, {"preserve_shape", "1"}}), Error);
}

}  // namespace
}  // namespace mxtrain::test
