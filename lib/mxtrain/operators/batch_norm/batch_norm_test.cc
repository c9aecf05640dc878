#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

struct Net {
  TShape data;
  int axis = 1;
  bool fix_gamma = false, global_stats = false, train = true, relu = false;
};
constexpr double kEps = 0.0625, kMomentum = 0.75;  // exact in float

// Channel of an element.
int64_t ChannelOf(const Net& net, int64_t at) {
  return at / net.data.Product(net.axis + 1, net.data.ndim()) % net.data[net.axis];
}

// Mean and biased variance of every channel.
Arrays StatisticsOf(const Net& net, const Values& x) {
  const int64_t channels = net.data[net.axis];
  const double size = static_cast<double>(net.data.Size() / channels);
  Arrays s{Values(channels), Values(channels)};
  for (size_t i = 0; i < x.size(); ++i) s[0][ChannelOf(net, i)] += x[i] / size;
  for (size_t i = 0; i < x.size(); ++i) s[1][ChannelOf(net, i)] += std::pow(x[i] - s[0][ChannelOf(net, i)], 2) / size;
  return s;
}

Arrays Normalise(const Net& net, const Arrays& in, const Arrays& aux) {
  const Arrays s = net.train && !net.global_stats ? StatisticsOf(net, in[0]) : aux;
  Values out(in[0].size()), inverse;
  for (double variance : s[1]) inverse.push_back(1 / std::sqrt(variance + kEps));
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t c = ChannelOf(net, i);
    out[i] = (in[0][i] - s[0][c]) * inverse[c] * (net.fix_gamma ? 1 : in[1][c]) + in[2][c];
    if (net.relu) out[i] = std::max(out[i], 0.0);
  }
  return {out, s[0], inverse};
}

OperatorCase CaseOf(const std::string& name, const Net& net) {
  OperatorCase c;
  c.name = "batch norm, " + name;
  c.op = net.relu ? "_BatchNormReLU" : "BatchNorm";
  c.kwargs = {{"eps", std::to_string(kEps)},
              {"momentum", std::to_string(kMomentum)},
              {"axis", std::to_string(net.axis)},
              {"fix_gamma", net.fix_gamma ? "True" : "False"},
              {"use_global_stats", net.global_stats ? "True" : "False"}};
  const int64_t channels = net.data[net.axis];
  c.shapes = {net.data, {channels}, {channels}};
  c.inputs = {Distinct(-2, 3), Uniform(0.5, 1.5)};
  c.aux = {Uniform(0.5, 1.5)};
  c.forward = [net](const Arrays& in, const Arrays& aux) { return Normalise(net, in, aux); };
  c.aux_after_backward = [net](const Arrays& in, const Arrays& aux) {
    if (!net.train || net.global_stats) return aux;
    const auto average = [](double moving, double now) { return kMomentum * moving + (1 - kMomentum) * now; };
    const Arrays s = StatisticsOf(net, in[0]);
    return Arrays{Apply(aux[0], s[0], average), Apply(aux[1], s[1], average)};
  };
  c.is_train = net.train;
  c.tolerance = {256, "sums over the batch, differences of close numbers, and a root"};
  return c;
}

void Run(const std::string& name, const Net& net) {
  RunCase(CaseOf(name, net));
}

TEST_CASE("BatchNorm: training") {
  Run("images", {.data = {3, 8, 4, 3}});
  Run("odd channels", {.data = {2, 5, 3, 3}});
  Run("gamma fixed", {.data = {2, 8, 3, 3}, .fix_gamma = true});
  Run("a matrix", {.data = {7, 3}});
  Run("channels last", {.data = {2, 3, 3, 4}, .axis = 3});
  Run("channels first", {.data = {3, 4, 2}, .axis = 0});
}

TEST_CASE("BatchNorm: global statistics") {
  Run("in training", {.data = {2, 8, 3, 3}, .global_stats = true});
  Run("in training, gamma fixed", {.data = {2, 8, 3, 3}, .fix_gamma = true, .global_stats = true});
  OperatorCase c = CaseOf("inference", {.data = {2, 8, 3, 3}, .train = false});
  c.backward = false;
  RunCase(c);
}

TEST_CASE("BatchNorm: narrow types keep float32 statistics") {
  OperatorCase c = CaseOf("narrow types", {.data = {2, 3, 3, 3}});
  c.types = {DType::kFloat16, DType::kBfloat16};
  c.input_types = {DType::kUnknown, DType::kFloat32, DType::kFloat32};
  RunCase(c);
}

TEST_CASE("BatchNorm: oneDNN takes images in blocks and plain") {
  for (bool relu : {false, true}) {
    OperatorCase c = CaseOf("onednn", {.data = {2, 16, 4, 4}, .relu = relu});
    c.types = {DType::kFloat32};
    c.must_accept = {"ref", "onednn"};
    RunCase(c);
  }
}

// The first layer of a net: its oneDNN row once refused where the data want no gradient.
TEST_CASE("BatchNorm: oneDNN serves data without gradient") {
  for (bool fix_gamma : {false, true}) {
    OperatorCase c = CaseOf("first layer", {.data = {2, 3, 5, 4}, .fix_gamma = fix_gamma});
    c.types = {DType::kFloat32};
    c.must_accept = {"onednn"};
    RunCase(c);
  }
}

TEST_CASE("_BatchNormReLU") {
  Run("relu", {.data = {3, 8, 4, 3}, .relu = true});
  Run("relu, gamma fixed", {.data = {2, 5, 3, 3}, .fix_gamma = true, .relu = true});
  Run("relu, global statistics", {.data = {2, 8, 3, 3}, .global_stats = true, .relu = true});
  OperatorCase c = CaseOf("relu, inference", {.data = {2, 8, 3, 3}, .train = false, .relu = true});
  c.backward = false;
  RunCase(c);
}

TEST_CASE("BatchNorm: shapes, hidden outputs, fusion") {
  const auto norm = TestRegistry().Create("BatchNorm", {});
  CHECK(norm->NumVisibleOutputs() == 1);
  CHECK(TestRegistry().Create("BatchNorm", {{"output_mean_var", "True"}})->NumVisibleOutputs() == 3);
  std::vector<TShape> in(3), out(3), aux(2);
  out[0] = {4, -1, 2, 2};
  aux[1] = {6};
  CHECK(norm->InferShape(&in, &out, &aux));
  CHECK(in[0] == TShape{4, 6, 2, 2});
  CHECK(in[1] == TShape{6});

  const auto relu = TestRegistry().Create("Activation", {{"act_type", "relu"}});
  const auto tanh = TestRegistry().Create("Activation", {{"act_type", "tanh"}});
  for (const FusePattern& pattern : TestRegistry().Patterns()) {
    if (pattern.name != "batch_norm+relu") continue;
    const OperatorProperty* good[] = {norm.get(), relu.get()};
    const OperatorProperty* bad[] = {norm.get(), tanh.get()};
    REQUIRE(pattern.params(good));
    CHECK(TestRegistry().Create(pattern.into, *pattern.params(good))->GetParams() == norm->GetParams());
    CHECK_FALSE(pattern.params(bad));
  }
}

}  // namespace
}  // namespace mxtrain::test
