// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "mxtrain/base/format.h"
#include "mxtrain/device/cpu/parallel.h"
#include "mxtrain/operator/broadcast_index.h"
#include "tests/support/case_parts.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

OperatorCase LeakyReluCase(const std::string& act_type, Kwargs more, const TShape& shape,
                           const ScalarFunction& f) {
  OperatorCase c;
  c.name = act_type + " " + shape.ToString();
  c.op = "LeakyReLU";
  c.kwargs = std::move(more);
  c.kwargs.push_back({"act_type", act_type});
  c.shapes = {shape};
  c.inputs = {UniformAwayFrom(-3, 3, {0}, 0.05)};
  c.forward = [f](const Arrays& in, const Arrays&) { return Arrays{Apply(in[0], f)}; };
  c.types = kAllFloatingTypes;
  c.tolerance = {16, "an exponential or an error function"};
  return c;
}

const std::vector<TShape> kLeakyShapes = {TShape{1}, TShape{0, 3}, TShape{3, 5, 7},
                                          TShape{2, 11, 3, 3}};

TEST_CASE("LeakyReLU: leaky, elu, gelu") {
  for (const TShape& shape : kLeakyShapes) {
    RunCase(LeakyReluCase("leaky", {}, shape, [](double x) { return x > 0 ? x : 0.25 * x; }));
    RunCase(LeakyReluCase("leaky", {{"slope", "-0.5"}}, shape,
                          [](double x) { return x > 0 ? x : -0.5 * x; }));
    RunCase(LeakyReluCase("elu", {{"slope", "0.75"}}, shape,
                          [](double x) { return x > 0 ? x : 0.75 * (std::exp(x) - 1); }));
    RunCase(LeakyReluCase("elu", {{"slope", "-0.5"}}, shape,
                          [](double x) { return x > 0 ? x : -0.5 * (std::exp(x) - 1); }));
    RunCase(LeakyReluCase("gelu", {}, shape,
                          [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }));
  }
}

TEST_CASE("LeakyReLU: the gradient of selu counts lambda twice below zero") {
  const double lambda = 1.0507009873554805, alpha = 1.6732632423543772;
  const auto selu = [=](double x) { return lambda * (x > 0 ? x : alpha * (std::exp(x) - 1)); };
  for (const TShape& shape : kLeakyShapes) {
    OperatorCase c = LeakyReluCase("selu", {}, shape, selu);
    c.gradient = [=](const Arrays& in, const Arrays&, const Arrays& head) {
      return Arrays{Apply(in[0], head[0], [=](double x, double g) {
        return g * lambda * (x > 0 ? 1 : alpha + selu(x));
      })};
    };
    RunCase(c);
  }
}

void RunPReLU(const TShape& data, const TShape& gamma,
              const std::function<int64_t(int64_t)>& channel) {
  OperatorCase c = LeakyReluCase("prelu", {}, data, {});
  c.shapes = {data, gamma};
  c.inputs = {UniformAwayFrom(-3, 3, {0}, 0.05), Uniform(-1, 1)};
  c.forward = [channel](const Arrays& in, const Arrays&) {
    Values y = in[0];
    for (size_t i = 0; i < y.size(); ++i)
      y[i] = y[i] > 0 ? y[i] : y[i] * in[1][channel(static_cast<int64_t>(i))];
    return Arrays{y};
  };
  c.tolerance = {64, "gamma's gradient is a sum over many elements"};
  RunCase(c);
}

TEST_CASE("LeakyReLU: prelu learns a slope per channel") {
  RunPReLU({5, 3}, TShape{3}, [](int64_t i) { return i % 3; });
  RunPReLU({2, 3, 4, 5}, TShape{3}, [](int64_t i) { return i / 20 % 3; });
  RunPReLU({2, 3, 4, 5}, TShape{1}, [](int64_t) { return 0; });
  RunPReLU({2, 3, 4}, {3, 1}, [](int64_t i) { return i / 4 % 3; });
  RunPReLU(TShape{4}, TShape{4}, [](int64_t i) { return i; });
  RunPReLU({0, 3}, TShape{3}, [](int64_t i) { return i % 3; });

  const auto property = TestRegistry().Create("LeakyReLU", {{"act_type", "prelu"}});
  CHECK(property->ListArguments() == std::vector<std::string>{"data", "gamma"});
  CHECK(property->DefaultInit(1) == R"(["constant", {"value": "0.25"}])");
  std::vector<TShape> in = {TShape{2, 7, 3}, TShape{}}, out(1), aux;
  CHECK(property->InferShape(&in, &out, &aux));
  CHECK(in[1] == TShape{7});
  in = {TShape{2, 7, 3}, TShape{5}}, out = {TShape{}};
  CHECK_THROWS_WITH_AS(property->InferShape(&in, &out, &aux),
                       doctest::Contains("gamma has shape [5]"), Error);
}

TEST_CASE(
    "LeakyReLU: prelu sums gamma's gradient over any axes, with the same bits on every team") {
  const std::pair<TShape, TShape> shapes[] = {{{2, 3, 31, 127}, {1, 3, 1, 1}},
                                              {{70001}, {1}},
                                              {{5, 7, 100, 3}, {1, 7, 1, 3}},
                                              {{40, 3, 1, 50}, {1, 1, 1, 1}},
                                              {{90, 700}, {1, 700}}};
  for (const auto& [data, gamma] : shapes) {
    const BroadcastIndex place(data, gamma);
    OperatorCase c = LeakyReluCase("prelu", {}, data, {});
    c.shapes = {data, gamma};
    c.inputs = {UniformAwayFrom(-3, 3, {0}, 0.05), Uniform(-1, 1)};
    c.forward = [place](const Arrays& in, const Arrays&) {
      Values y = in[0];
      for (size_t i = 0; i < y.size(); ++i)
        y[i] = y[i] > 0 ? y[i] : y[i] * in[1][place(static_cast<int64_t>(i))];
      return Arrays{y};
    };
    c.gradient = [place](const Arrays& in, const Arrays&, const Arrays& head) {
      Values x = in[0], gradient(in[1].size());
      for (size_t i = 0; i < x.size(); ++i) {
        const int64_t at = place(static_cast<int64_t>(i));
        gradient[at] += x[i] > 0 ? 0 : head[0][i] * x[i];
        x[i] = head[0][i] * (x[i] > 0 ? 1 : in[1][at]);
      }
      return Arrays{x, gradient};
    };
    c.types = {DType::kFloat32};
    c.tolerance = {64, "gamma's gradient is a sum over many elements"};
    RunCase(c);

    std::map<std::string, Values> first;  // by kernel
    c.check = [&first](const CaseResult& r) -> std::vector<std::string> {
      const bool same = first.try_emplace(r.kernel, r.in_grad[1]).first->second == r.in_grad[1];
      return same ? std::vector<std::string>() : std::vector<std::string>{"other bits"};
    };
    const int team = TeamSize();
    for (const int threads : {1, 2, 3, 5}) {
      CAPTURE(threads);
      const auto backend = NewCpuBackend(threads);
      backend->EnterThread();
      for (const std::string& problem : ExamineCase(c, TestRegistry(), *backend).problems)
        FAIL_CHECK(problem);
    }
    SetTeamSize(team);
    CHECK(!first.empty());
  }
}

TEST_CASE(
    "LeakyReLU: rrelu draws a slope per element in training and uses their mean in evaluation") {
  OperatorCase c = LeakyReluCase("rrelu", {}, {41, 83}, {});
  c.forward = {};
  c.check = [](const CaseResult& r) {
    std::vector<std::string> problems;
    double sum = 0;
    const double slack = r.type == DType::kBfloat16 ? 0.02 : 0.004;
    for (size_t i = 0; i < r.in[0].size(); ++i) {
      const double x = r.in[0][i], s = r.out[1][i];
      sum += s;
      if (s < 0.125 - slack || s > 0.334 + slack) problems.push_back(format("slope {}", s));
      if (std::abs(r.out[0][i] - (x > 0 ? x : s * x)) > slack * 4)
        problems.push_back(format("output {} for {} with slope {}", r.out[0][i], x, s));
      if (std::abs(r.in_grad[0][i] - r.head[0][i] * (x > 0 ? 1 : s)) > slack)
        problems.push_back(format("gradient {}", i));
    }
    const double mean = sum / static_cast<double>(r.in[0].size());
    if (std::abs(mean - 0.2295) > 0.006) problems.push_back(format("mean slope {}", mean));
    return problems;
  };
  RunCase(c);

  const double mean = (0.125f + 0.334f) / 2;
  OperatorCase evaluation = LeakyReluCase("rrelu", {}, {5, 7}, {});
  evaluation.is_train = false;
  evaluation.forward = [=](const Arrays& in, const Arrays&) {
    return Arrays{Apply(in[0], [=](double x) { return x > 0 ? x : mean * x; }),
                  Values(in[0].size(), mean)};
  };
  evaluation.backward = false;
  evaluation.types = {DType::kFloat32, DType::kFloat16, DType::kBfloat16};
  RunCase(evaluation);
  CHECK(TestRegistry().Create("LeakyReLU", {{"act_type", "rrelu"}})->NumVisibleOutputs() == 2);
}

}  // namespace
}  // namespace mxtrain::test
