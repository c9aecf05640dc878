// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

struct BatchNormNet {
  TShape data;
  int axis = 1;
  bool fix_gamma = false, global_stats = false, train = true;
  std::string act = "";  // not empty: the fused operator
  bool sum = false;
  bool batch_sums = false;  // the statistics come from the last argument, whatever the data are
};
constexpr double kEps = 0.0625, kStatisticsMomentum = 0.75;  // exact in float

// Channel of an element.
int64_t ChannelOf(const BatchNormNet& net, int64_t at) {
  return at / net.data.Product(net.axis + 1, net.data.ndim()) % net.data[net.axis];
}

// Mean and biased variance of every channel.
Arrays StatisticsOf(const BatchNormNet& net, const Arrays& in) {
  const int64_t channels = net.data[net.axis];
  const double size = static_cast<double>(net.data.Size() / std::max<int64_t>(1, channels));
  Arrays s{Values(channels), Values(channels)};
  const Values& x = in[0];
  if (net.batch_sums) {
    for (int64_t c = 0; c < channels; ++c) {
      s[0][c] = in.back()[c] / size;
      s[1][c] = in.back()[channels + c] / size - s[0][c] * s[0][c];
    }
    return s;
  }
  for (size_t i = 0; i < x.size(); ++i) s[0][ChannelOf(net, i)] += x[i] / size;
  for (size_t i = 0; i < x.size(); ++i)
    s[1][ChannelOf(net, i)] += std::pow(x[i] - s[0][ChannelOf(net, i)], 2) / size;
  return s;
}

Arrays Normalise(const BatchNormNet& net, const Arrays& in, const Arrays& aux) {
  const Arrays s = net.train && !net.global_stats ? StatisticsOf(net, in) : aux;
  Values out(in[0].size()), inverse;
  for (double variance : s[1]) inverse.push_back(1 / std::sqrt(variance + kEps));
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t c = ChannelOf(net, i);
    out[i] = (in[0][i] - s[0][c]) * inverse[c] * (net.fix_gamma ? 1 : in[1][c]) + in[2][c];
    if (net.sum) out[i] += in[3][i];
    if (net.act == "relu" || net.act == "relu6") out[i] = std::max(out[i], 0.0);
    if (net.act == "relu6") out[i] = std::min(out[i], 6.0);
    if (net.act == "silu") out[i] /= 1 + std::exp(-out[i]);
    if (net.act == "hard_swish") out[i] *= std::min(std::max(out[i] + 3, 0.0), 6.0) / 6;
  }
  return {out, s[0], inverse};
}

OperatorCase BatchNormCase(const std::string& name, const BatchNormNet& net) {
  OperatorCase c;
  c.name = "batch norm, " + name;
  c.op = net.act.empty() ? "BatchNorm" : "_BatchNormActivation";
  c.kwargs = {{"eps", std::to_string(kEps)},
              {"momentum", std::to_string(kStatisticsMomentum)},
              {"axis", std::to_string(net.axis)},
              {"fix_gamma", net.fix_gamma ? "True" : "False"},
              {"use_global_stats", net.global_stats ? "True" : "False"}};
  if (!net.act.empty())
    c.kwargs.insert(c.kwargs.end(), {{"act", net.act}, {"with_sum", net.sum ? "True" : "False"}});
  const int64_t channels = net.data[net.axis];
  c.shapes = {net.data, {channels}, {channels}};
  c.inputs = {Distinct(-2, 3), Uniform(0.5, 1.5), Uniform(0.5, 1.5)};
  // Some values exceed 6.
  if (net.act == "relu6") c.inputs = {Distinct(-2, 3), Uniform(2.5, 3.5), Uniform(2.5, 3.5)};
  if (net.sum) c.shapes.push_back(net.data), c.inputs.push_back(Distinct(-1, 1.5));
  c.aux = {Uniform(0.5, 1.5)};
  c.forward = [net](const Arrays& in, const Arrays& aux) { return Normalise(net, in, aux); };
  c.aux_after_backward = [net](const Arrays& in, const Arrays& aux) {
    if (!net.train || net.global_stats) return aux;
    const auto average = [](double moving, double now) {
      return kStatisticsMomentum * moving + (1 - kStatisticsMomentum) * now;
    };
    const Arrays s = StatisticsOf(net, in);
    return Arrays{Apply(aux[0], s[0], average), Apply(aux[1], s[1], average)};
  };
  c.is_train = net.train;
  c.tolerance = {256, "sums over the batch, differences of close numbers, and a root"};
  return c;
}

void RunBatchNorm(const std::string& name, const BatchNormNet& net) {
  RunCase(BatchNormCase(name, net));
}

TEST_CASE("BatchNorm: training") {
  RunBatchNorm("images", {.data = {3, 8, 4, 3}});
  RunBatchNorm("odd channels", {.data = {2, 5, 3, 3}});
  RunBatchNorm("gamma fixed", {.data = {2, 8, 3, 3}, .fix_gamma = true});
  RunBatchNorm("a matrix", {.data = {7, 3}});
  RunBatchNorm("channels last", {.data = {2, 3, 3, 4}, .axis = 3});
  RunBatchNorm("channels first", {.data = {3, 4, 2}, .axis = 0});
  RunBatchNorm("no channels", {.data = {3, 0}});
}

TEST_CASE("BatchNorm: global statistics") {
  RunBatchNorm("in training", {.data = {2, 8, 3, 3}, .global_stats = true});
  RunBatchNorm("in training, gamma fixed",
               {.data = {2, 8, 3, 3}, .fix_gamma = true, .global_stats = true});
  OperatorCase c = BatchNormCase("inference", {.data = {2, 8, 3, 3}, .train = false});
  c.backward = false;
  RunCase(c);
}

TEST_CASE("BatchNorm: narrow types keep float32 statistics") {
  OperatorCase c = BatchNormCase("narrow types", {.data = {2, 3, 3, 3}});
  c.types = {DType::kFloat16, DType::kBfloat16};
  c.input_types = {DType::kUnknown, DType::kFloat32, DType::kFloat32};
  RunCase(c);
}

TEST_CASE("BatchNorm: vectors take every layout of float32 and bfloat16") {
  const auto run = [](const std::string& name, const BatchNormNet& net) {
    OperatorCase c = BatchNormCase(name, net);
    c.types = {DType::kFloat32};
    c.must_accept = {"ref", "simd"};
    RunCase(c);
    c.types = {DType::kBfloat16};
    c.input_types = {DType::kUnknown, DType::kFloat32, DType::kFloat32};
    CHECK(KernelRan(RunCase(c), "simd"));
  };
  for (const TShape& shape : {TShape{2, 16, 4, 4}, TShape{3, 19, 5, 7}, TShape{1, 1, 1, 2},
                              TShape{16, 3, 5, 4}, TShape{2, 3, 37}, TShape{9, 21},
                              TShape{2, 5, 2, 3, 4}, TShape{1, 8, 33, 33}, TShape{2, 2, 97, 101}}) {
    run("simd " + shape.ToString(), {.data = shape});
  }
  run("simd, channels last", {.data = {2, 5, 4, 19}, .axis = 3});
}

TEST_CASE("BatchNorm: a mean far from zero costs no accuracy of the variance") {
  OperatorCase c = BatchNormCase("far mean", {.data = {2, 3, 8, 8}});
  c.inputs[0] = Distinct(4095, 4097);
  c.types = {DType::kFloat32};
  c.tolerance = {65536, "a float sum of 128 numbers near 4096, for a spread of 1"};
  c.backward = false;
  RunCase(c);
}

TEST_CASE("_BatchNormActivation: with and without sum") {
  for (const std::string act : {"none", "relu", "relu6", "silu", "hard_swish"}) {
    for (bool sum : {false, true}) {
      if (sum && (act == "silu" || act == "hard_swish")) continue;
      const std::string name = act + (sum ? " with sum" : "");
      for (const TShape& shape :
           {TShape{3, 8, 4, 3}, TShape{2, 19, 3, 3}, TShape{5, 18}, TShape{2, 3, 33, 18}}) {
        OperatorCase c =
            BatchNormCase(name + " " + shape.ToString(), {.data = shape, .act = act, .sum = sum});
        c.must_accept = {"simd"};
        RunCase(c);
        c.types = {DType::kBfloat16};
        c.input_types = {DType::kUnknown, DType::kFloat32, DType::kFloat32};
        CHECK(KernelRan(RunCase(c), "simd"));
      }
      RunBatchNorm(name + ", gamma fixed",
                   {.data = {2, 5, 3, 3}, .fix_gamma = true, .act = act, .sum = sum});
      RunBatchNorm(name + ", global statistics",
                   {.data = {2, 8, 3, 3}, .global_stats = true, .act = act, .sum = sum});
      OperatorCase c = BatchNormCase(
          name + ", inference", {.data = {2, 8, 3, 3}, .train = false, .act = act, .sum = sum});
      c.backward = false;
      RunCase(c);
    }
  }
}

// The gradient of batch norm by the statistics of `in`, as if they were those of the data; ReLU or
// no activation.
Arrays GradientOf(const BatchNormNet& net, const Arrays& in, const Values& head) {
  const int64_t channels = net.data[net.axis];
  const double size = static_cast<double>(net.data.Size() / channels);
  const Arrays s = StatisticsOf(net, in);
  Values passed(head.size()), normal(head.size()), data(head.size()), gamma(channels),
      beta(channels);
  const auto inverse = [&](int64_t c) { return 1 / std::sqrt(s[1][c] + kEps); };
  for (size_t i = 0; i < head.size(); ++i) {
    const int64_t c = ChannelOf(net, i);
    normal[i] = (in[0][i] - s[0][c]) * inverse(c);
    const double value = normal[i] * in[1][c] + in[2][c] + (net.sum ? in[3][i] : 0);
    passed[i] = net.act == "none" || value > 0 ? head[i] : 0;
    gamma[c] += passed[i] * normal[i];
    beta[c] += passed[i];
  }
  for (size_t i = 0; i < head.size(); ++i) {
    const int64_t c = ChannelOf(net, i);
    data[i] = in[1][c] * inverse(c) * (passed[i] - beta[c] / size - normal[i] * gamma[c] / size);
  }
  Arrays gradients{data, gamma, beta};
  if (net.sum) gradients.push_back(passed);
  gradients.push_back({});
  return gradients;
}

TEST_CASE("_BatchNormActivation: sums of the batch as an argument") {
  for (const bool sum : {false, true}) {
    for (const char* act : {"none", "relu"}) {
      const BatchNormNet net{.data = {3, 8, 4, 3}, .act = act, .sum = sum, .batch_sums = true};
      OperatorCase c =
          BatchNormCase(std::string("given sums, ") + act + (sum ? " with sum" : ""), net);
      c.kwargs.emplace_back("with_batch_sums", "True");
      c.shapes.push_back({2, 8});
      c.inputs.push_back(Uniform(36 * 0.4, 36 * 0.5));  // variances from 0.15 on
      c.gradient = [net](const Arrays& in, const Arrays&, const Arrays& head) {
        return GradientOf(net, in, head[0]);
      };
      c.must_accept = {"ref"};
      RunCase(c);
      c.types = {DType::kFloat16};
      c.input_types = {DType::kUnknown, DType::kFloat32, DType::kFloat32, DType::kFloat32};
      if (sum) c.input_types.insert(c.input_types.begin() + 3, DType::kUnknown);
      RunCase(c);
    }
  }
  const Kwargs kwargs{{"with_batch_sums", "True"}};
  const auto norm = TestRegistry().Create("_BatchNormActivation", kwargs);
  CHECK(norm->ListArguments().back() == "batch_sums");
  CHECK_FALSE(norm->HasGradient(3));
  CHECK(norm->HasGradient(2));
  std::vector<TShape> in(4), out(3), aux(2);
  in[0] = {4, -1, 2, 2};
  in[3] = {2, 6};
  out[0] = {4, 6, 2, 2};
  CHECK(norm->InferShape(&in, &out, &aux));
  CHECK(in[1] == TShape{6});
  CHECK_THROWS_WITH_AS(
      TestRegistry().Create("_BatchNormActivation",
                            {{"with_batch_sums", "True"}, {"use_global_stats", "True"}}),
      doctest::Contains("statistics of the batch only"), Error);
}

TEST_CASE("_BatchNormActivation: a gradient that has passed ReLU, with its sums") {
  const BatchNormNet net{.data = {3, 8, 4, 3}, .act = "relu"};
  OperatorCase c = BatchNormCase("gated gradient", net);
  c.kwargs.emplace_back("gated_gradient", "True");
  // Of arbitrary sums.
  c.gradient = [net](const Arrays& in, const Arrays&, const Arrays& head) {
    const Arrays s = StatisticsOf(net, in);
    Values data(head[0].size());
    const double size = static_cast<double>(net.data.Size() / net.data[net.axis]);
    for (size_t i = 0; i < data.size(); ++i) {
      const int64_t at = ChannelOf(net, i);
      const double inverse = 1 / std::sqrt(s[1][at] + kEps),
                   normal = (in[0][i] - s[0][at]) * inverse;
      data[i] =
          in[1][at] * inverse * (head[0][i] - head[1][at] / size - normal * head[2][at] / size);
    }
    return Arrays{data, head[2], head[1]};
  };
  c.must_accept = {"ref"};
  RunCase(c);
  c.types = {DType::kFloat16};
  c.input_types = {DType::kUnknown, DType::kFloat32, DType::kFloat32};
  RunCase(c);
  for (const Kwargs& other :
       {Kwargs{{"act", "relu6"}}, Kwargs{{"with_sum", "True"}}, Kwargs{{"fix_gamma", "True"}},
        Kwargs{{"output_mean_var", "True"}}, Kwargs{{"use_global_stats", "True"}}}) {
    Kwargs kwargs{{"gated_gradient", "True"}, other[0]};
    if (other[0].first != "act") kwargs.emplace_back("act", "relu");
    if (other[0].first != "fix_gamma") kwargs.emplace_back("fix_gamma", "False");
    CHECK_THROWS_WITH_AS(TestRegistry().Create("_BatchNormActivation", kwargs),
                         doctest::Contains("gated_gradient"), Error);
  }
}

TEST_CASE("BatchNorm: shapes, hidden outputs, fusion") {
  const auto norm = TestRegistry().Create("BatchNorm", {});
  CHECK(norm->NumVisibleOutputs() == 1);
  CHECK(TestRegistry().Create("BatchNorm", {{"output_mean_var", "True"}})->NumVisibleOutputs() ==
        3);
  std::vector<TShape> in(3), out(3), aux(2);
  out[0] = {4, -1, 2, 2};
  aux[1] = {6};
  CHECK(norm->InferShape(&in, &out, &aux));
  CHECK(in[0] == TShape{4, 6, 2, 2});
  CHECK(in[1] == TShape{6});
}

// The fused operator's parameters if a pattern matches these operators.
std::optional<Kwargs> Fused(const std::vector<std::shared_ptr<const OperatorProperty>>& ops) {
  std::vector<const OperatorProperty*> chain;
  for (const auto& op : ops) chain.push_back(op.get());
  for (const FusePattern& pattern : TestRegistry().Patterns()) {
    bool same = pattern.into == "_BatchNormActivation" && pattern.chain.size() == chain.size();
    for (size_t i = 0; same && i < chain.size(); ++i)
      same = pattern.chain[i].op == chain[i]->TypeString();
    if (same) return pattern.params(chain);
  }
  return std::nullopt;
}

TEST_CASE("BatchNorm: types that do not fit the data") {
  const auto op = TestRegistry().Create("BatchNorm", {});
  const DType unknown = DType::kUnknown, half = DType::kFloat16;
  std::vector<DType> in{half, half, unknown}, out{unknown, unknown, unknown}, aux;
  CHECK_THROWS_WITH_AS(op->InferType(&in, &out, &aux),
                       "BatchNorm: gamma for float16 data is float16, but float32 was expected",
                       Error);
  in = {half, unknown, unknown}, out = {DType::kFloat32, unknown, unknown};
  CHECK_THROWS_WITH_AS(op->InferType(&in, &out, &aux),
                       "BatchNorm: output for float16 data is float32, but float16 was expected",
                       Error);
}

TEST_CASE("BatchNorm: what fuses with it") {
  const auto create = [](const char* op, const Kwargs& kwargs) {
    return TestRegistry().Create(op, kwargs);
  };
  const auto norm = create("BatchNorm", {{"eps", "0.5"}}), add = create("elemwise_add", {}),
             shown = create("BatchNorm", {{"output_mean_var", "1"}});
  const auto relu = create("Activation", {{"act_type", "relu"}}),
             tanh = create("Activation", {{"act_type", "tanh"}});
  const auto relu6 = create("clip", {{"a_min", "0"}, {"a_max", "6"}}),
             clip = create("clip", {{"a_min", "-1"}, {"a_max", "6"}});
  const auto two = create("ElementWiseSum", {{"num_args", "2"}}),
             three = create("ElementWiseSum", {{"num_args", "3"}});
  const auto text = [&](const std::vector<std::shared_ptr<const OperatorProperty>>& ops) {
    const auto kwargs = Fused(ops);
    if (!kwargs) return std::string("-");
    const auto fused = create("_BatchNormActivation", *kwargs);
    std::string result;
    for (const auto& [key, value] : fused->GetParams()) {
      if (key == "eps" || key == "act" || key == "with_sum") result += value + " ";
    }
    return result + std::to_string(fused->ListArguments().size());
  };
  CHECK(text({norm, relu}) == "0.5 relu False 3");
  CHECK(text({norm, relu6}) == "0.5 relu6 False 3");
  CHECK(text({norm, add}) == "0.5 none True 4");
  CHECK(text({norm, two}) == "0.5 none True 4");
  CHECK(text({norm, add, relu}) == "0.5 relu True 4");
  CHECK(text({norm, two, relu6}) == "0.5 relu6 True 4");
  CHECK(text({norm, create("silu", {})}) == "0.5 silu False 3");
  CHECK(text({norm, create("hard_swish", {})}) == "0.5 hard_swish False 3");
  CHECK(text({norm, add, create("silu", {})}) == "-");
  CHECK(text({norm, tanh}) == "-");
  CHECK_THROWS_WITH_AS(create("_BatchNormActivation", {{"act", "silu"}, {"with_sum", "True"}}),
                       doctest::Contains("relu and relu6 only"), Error);
  CHECK(text({norm, clip}) == "-");
  CHECK(text({norm, three, relu}) == "-");
  CHECK(text({norm, add, tanh}) == "-");
  CHECK(text({shown, relu}) == "-");
}

}  // namespace
}  // namespace mxtrain::test
