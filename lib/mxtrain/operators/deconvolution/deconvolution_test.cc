// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "mxtrain/device/cpu/onednn/bfloat16.h"
#include "mxtrain/device/cpu/onednn/version.h"
#include "tests/support/indices.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

struct DeconvolutionNet {
  TShape data, kernel, stride = {}, pad = {}, dilate = {}, adj = {}, target = {};
  int64_t filters = 1, groups = 1;
  bool bias = false;
};

int64_t EntryOr(const TShape& shape, int i, int64_t otherwise) {
  return shape.ndim() > 0 ? shape[i] : otherwise;
}

// Along an axis: the output's length, and the cells that are cut off before the first one.
struct Side {
  int64_t length, cut;
};
Side SideOf(const DeconvolutionNet& net, int i) {
  const int64_t reach = EntryOr(net.dilate, i, 1) * (net.kernel[i] - 1) + 1,
                whole = EntryOr(net.stride, i, 1) * (net.data[2 + i] - 1) + reach;
  if (net.target.ndim() > 0) {
    const int64_t surplus = whole - net.target[i];
    return {net.target[i], surplus - surplus / 2};
  }
  const int64_t pad = EntryOr(net.pad, i, 0);
  return {whole - 2 * pad + EntryOr(net.adj, i, 0), pad};
}

TShape DeconvolvedShape(const DeconvolutionNet& net) {
  TShape out = net.data;
  out[1] = net.filters;
  for (int i = 0; i < net.kernel.ndim(); ++i) out[2 + i] = SideOf(net, i).length;
  return out;
}

TShape WeightShape(const DeconvolutionNet& net) {
  TShape weight = net.data;
  weight[0] = net.data[1];
  weight[1] = net.filters / net.groups;
  for (int i = 0; i < net.kernel.ndim(); ++i) weight[2 + i] = net.kernel[i];
  return weight;
}

// f(element of the data, of the weight, of the output) for every product of the definition: each
// element of the data lays the kernel down around its place.
template <typename F>
void ForProducts(const DeconvolutionNet& net, F f) {
  const TShape out = DeconvolvedShape(net), weight = WeightShape(net);
  const int64_t group_in = net.data[1] / net.groups;
  ForIndices(net.data, [&](const Index& from) {
    ForIndices(weight, [&](const Index& tap) {
      if (tap[0] != from[1]) return;
      Index to = from;
      to[1] = from[1] / group_in * weight[1] + tap[1];
      for (int i = 0; i < net.kernel.ndim(); ++i) {
        const auto axis = static_cast<size_t>(2 + i);
        to[axis] = from[axis] * EntryOr(net.stride, i, 1) + tap[axis] * EntryOr(net.dilate, i, 1) -
                   SideOf(net, i).cut;
      }
      const int64_t at = OffsetOf(out, to);
      if (at >= 0) f(OffsetOf(net.data, from), OffsetOf(weight, tap), at);
    });
  });
}

OperatorCase DeconvolutionCase(const std::string& name, const DeconvolutionNet& net) {
  OperatorCase c;
  c.name = "deconvolution, " + name;
  c.op = "Deconvolution";
  c.kwargs = {{"kernel", net.kernel.ToTuple()},
              {"num_filter", std::to_string(net.filters)},
              {"num_group", std::to_string(net.groups)},
              {"workspace", "512"}};
  for (const auto& [key, value] : {std::pair("stride", net.stride),
                                   {"pad", net.pad},
                                   {"dilate", net.dilate},
                                   {"adj", net.adj},
                                   {"target_shape", net.target}}) {
    if (value.ndim() > 0) c.kwargs.emplace_back(key, value.ToTuple());
  }
  if (net.bias) c.kwargs.emplace_back("no_bias", "False");
  c.shapes = {net.data, WeightShape(net)};
  if (net.bias) c.shapes.push_back({net.filters});
  c.inputs = {Uniform(-1, 1)};
  const TShape out = DeconvolvedShape(net);
  const int64_t plane = out.Product(2, out.ndim());
  c.forward = [=](const Arrays& in, const Arrays&) {
    Values result(static_cast<size_t>(out.Size()));
    for (size_t i = 0; net.bias && i < result.size(); ++i)
      result[i] = in[2][i / static_cast<size_t>(plane) % static_cast<size_t>(net.filters)];
    ForProducts(net, [&](int64_t data, int64_t weight, int64_t at) {
      result[static_cast<size_t>(at)] +=
          in[0][static_cast<size_t>(data)] * in[1][static_cast<size_t>(weight)];
    });
    return Arrays{result};
  };
  c.gradient = [=](const Arrays& in, const Arrays&, const Arrays& head) {
    Arrays gradients{Values(in[0].size()), Values(in[1].size())};
    ForProducts(net, [&](int64_t data, int64_t weight, int64_t at) {
      const double h = head[0][static_cast<size_t>(at)];
      gradients[0][static_cast<size_t>(data)] += h * in[1][static_cast<size_t>(weight)];
      gradients[1][static_cast<size_t>(weight)] += h * in[0][static_cast<size_t>(data)];
    });
    if (net.bias) {
      Values sums(static_cast<size_t>(net.filters));
      for (size_t i = 0; i < head[0].size(); ++i)
        sums[i / static_cast<size_t>(plane) % sums.size()] += head[0][i];
      gradients.push_back(sums);
    }
    return gradients;
  };
  const double terms = static_cast<double>(c.shapes[1].Product(1, c.shapes[1].ndim()) *
                                               net.data[1] / std::max<int64_t>(net.groups, 1) +
                                           net.data[0] * plane);
  c.tolerance = {16 + terms / 4, "sums of as many products, in any order"};
  return c;
}

void RunDeconvolution(const std::string& name, const DeconvolutionNet& net,
                      const std::vector<std::string>& must_accept = {"ref", "onednn"}) {
  OperatorCase c = DeconvolutionCase(name, net);
  c.must_accept = must_accept;
  RunCase(c);
}

TEST_CASE("Deconvolution: kernels, strides, pads") {
  RunDeconvolution(
      "4x4, doubled, as in a decoder",
      {.data = {2, 16, 5, 4}, .kernel = {4, 4}, .stride = {2, 2}, .pad = {1, 1}, .filters = 16});
  RunDeconvolution(
      "3x3", {.data = {2, 16, 6, 5}, .kernel = {3, 3}, .pad = {1, 1}, .filters = 8, .bias = true});
  RunDeconvolution("1x1", {.data = {2, 16, 4, 4}, .kernel = {1, 1}, .filters = 8, .bias = true});
  RunDeconvolution(
      "gaps between windows",
      {.data = {1, 8, 3, 4}, .kernel = {2, 1}, .stride = {3, 2}, .filters = 8, .bias = true});
  RunDeconvolution(
      "channels that are not a multiple of a block",
      {.data = {2, 10, 5, 5}, .kernel = {3, 3}, .stride = {2, 2}, .filters = 13, .bias = true});
  RunDeconvolution("uneven in every parameter", {.data = {1, 8, 5, 7},
                                                 .kernel = {3, 2},
                                                 .stride = {2, 3},
                                                 .pad = {1, 0},
                                                 .adj = {1, 2},
                                                 .filters = 8,
                                                 .bias = true});
  RunDeconvolution("dilated", {.data = {1, 8, 5, 4},
                               .kernel = {3, 2},
                               .stride = {1, 2},
                               .pad = {2, 1},
                               .dilate = {2, 3},
                               .filters = 8});
}

TEST_CASE("Deconvolution: groups") {
  RunDeconvolution("two groups", {.data = {2, 16, 4, 3},
                                  .kernel = {3, 3},
                                  .stride = {2, 2},
                                  .filters = 32,
                                  .groups = 2,
                                  .bias = true});
  RunDeconvolution(
      "two groups of odd size",
      {.data = {2, 6, 4, 5}, .kernel = {3, 3}, .pad = {1, 1}, .filters = 4, .groups = 2}, {"ref"});
  RunDeconvolution(
      "depthwise",
      {.data = {1, 5, 4, 3}, .kernel = {4, 4}, .stride = {2, 2}, .filters = 5, .groups = 5},
      {"ref"});
}

// The numbers of pad and adj that follow from the size, even and odd.
TEST_CASE("Deconvolution: target_shape") {
  RunDeconvolution("of two parities", {.data = {1, 8, 4, 5},
                                       .kernel = {4, 4},
                                       .stride = {2, 2},
                                       .target = {8, 11},
                                       .filters = 8,
                                       .bias = true});
  RunDeconvolution("one cell too many at stride 1",
                   {.data = {1, 4, 4, 5}, .kernel = {2, 2}, .target = {4, 5}, .filters = 3},
                   {"ref"});
  OperatorCase c = DeconvolutionCase(
      "pad and adj give way",
      {.data = {1, 3, 4, 4}, .kernel = {3, 3}, .stride = {2, 2}, .target = {8, 7}, .filters = 2});
  c.kwargs.emplace_back("pad", "(9, 9)");
  c.kwargs.emplace_back("adj", "(5, 5)");
  RunCase(c);
}

TEST_CASE("Deconvolution: sequences and volumes") {
  RunDeconvolution(
      "sequence",
      {.data = {2, 16, 9}, .kernel = {4}, .stride = {2}, .pad = {1}, .filters = 16, .bias = true});
  RunDeconvolution("sequence, odd",
                   {.data = {3, 3, 7},
                    .kernel = {3},
                    .stride = {3},
                    .dilate = {2},
                    .adj = {1},
                    .filters = 5,
                    .bias = true},
                   {"ref"});
  RunDeconvolution("volume", {.data = {1, 16, 3, 2, 4},
                              .kernel = {2, 3, 2},
                              .stride = {2, 1, 2},
                              .pad = {0, 1, 0},
                              .filters = 16,
                              .bias = true});
  RunDeconvolution(
      "volume, odd",
      {.data = {2, 2, 2, 3, 2}, .kernel = {3, 2, 2}, .dilate = {1, 2, 1}, .filters = 3}, {"ref"});
}

TEST_CASE("Deconvolution: small, empty, other types, inference") {
  RunDeconvolution("one of everything", {.data = {1, 1, 1, 1}, .kernel = {1, 1}, .bias = true},
                   {"ref"});
  RunDeconvolution("no images",
                   {.data = {0, 3, 4, 4}, .kernel = {3, 3}, .filters = 2, .bias = true}, {"ref"});
  const DeconvolutionNet net{
      .data = {1, 8, 4, 4}, .kernel = {3, 3}, .stride = {2, 2}, .filters = 8, .bias = true};
  OperatorCase c = DeconvolutionCase("narrow types", net);
  c.types = {DType::kFloat16, DType::kBfloat16};
  RunCase(c);
  c = DeconvolutionCase("bfloat16 with a float32 bias", net);
  c.types = {DType::kBfloat16};
  c.input_types = {DType::kUnknown, DType::kUnknown, DType::kFloat32};
  const CaseReport report = RunCase(c);
  if (!OneDnnVersion().empty() && WhyNoBfloat16().empty()) CHECK(KernelRan(report, "onednn"));
  c = DeconvolutionCase("inference", net);
  c.is_train = false;
  c.backward = false;
  c.must_accept = {"ref", "onednn"};
  RunCase(c);
}

std::shared_ptr<const OperatorProperty> MakeDeconvolution(Kwargs more) {
  Kwargs kwargs{{"num_filter", "8"}};
  kwargs.insert(kwargs.end(), more.begin(), more.end());
  return TestRegistry().Create("Deconvolution", kwargs);
}

TEST_CASE("Deconvolution: shapes are inferred in both directions") {
  const auto up = MakeDeconvolution({{"kernel", "(4, 4)"},
                                     {"stride", "(2, 2)"},
                                     {"pad", "(1, 1)"},
                                     {"num_group", "2"},
                                     {"no_bias", "False"}});
  CHECK(up->ListArguments() == std::vector<std::string>{"data", "weight", "bias"});
  std::vector<TShape> in{{-1, 4, 7, 5}, TShape(), TShape()}, out(1), aux;
  CHECK_FALSE(up->InferShape(&in, &out, &aux));
  CHECK(in[1] == TShape{4, 4, 4, 4});
  CHECK(in[2] == TShape{8});
  CHECK(out[0] == TShape{-1, 8, 14, 10});
  in = {TShape(), {6, 4, 4, 4}, TShape()};
  out = {{3, 8, 14, 10}};
  CHECK(up->InferShape(&in, &out, &aux));
  CHECK(in[0] == TShape{3, 6, 7, 5});

  const auto sized =
      MakeDeconvolution({{"kernel", "(4, 4)"}, {"stride", "(2, 2)"}, {"target_shape", "(9, 8)"}});
  CHECK(sized->ListArguments() == std::vector<std::string>{"data", "weight"});
  in = {{1, 3, 4, 4}, TShape()};
  out = {TShape()};
  CHECK(sized->InferShape(&in, &out, &aux));
  CHECK(out[0] == TShape{1, 8, 9, 8});
  // MXNet writes an unset size as zeros.
  in = {{1, 3, 4, 4}, TShape()};
  out = {TShape()};
  CHECK(MakeDeconvolution({{"kernel", "(2, 2)"}, {"target_shape", "(0, 0)"}})
            ->InferShape(&in, &out, &aux));
  CHECK(out[0] == TShape{1, 8, 5, 5});
}

TEST_CASE("Deconvolution: invalid parameters are rejected by name") {
  CHECK_THROWS_WITH_AS(MakeDeconvolution({{"kernel", "(2, 2, 2, 2)"}}),
                       doctest::Contains("one to three"), Error);
  CHECK_THROWS_WITH_AS(MakeDeconvolution({{"kernel", "(3, 3)"}, {"adj", "(0, 1)"}}),
                       "Deconvolution: adj = (0, 1) must be less than stride = (1, 1)", Error);
  CHECK_THROWS_WITH_AS(MakeDeconvolution({{"kernel", "(3, 3)"}, {"target_shape", "(0, 4)"}}),
                       doctest::Contains("target_shape = (0, 4) has an entry below 1"), Error);
  CHECK_THROWS_WITH_AS(MakeDeconvolution({{"kernel", "(3, 3)"}, {"layout", "NCW"}}),
                       doctest::Contains("layout must be NCHW"), Error);
  std::vector<TShape> in{{1, 3, 2, 2}, TShape()}, out(1), aux;
  CHECK_THROWS_WITH_AS(MakeDeconvolution({{"kernel", "(3, 3)"}, {"target_shape", "(4, 5)"}})
                           ->InferShape(&in, &out, &aux),
                       doctest::Contains("exceeds the 4 cells"), Error);
  out = {TShape()};
  CHECK_THROWS_WITH_AS(
      MakeDeconvolution({{"kernel", "(3, 3)"}, {"pad", "(2, 2)"}})->InferShape(&in, &out, &aux),
      doctest::Contains("leaves nothing of the 4 cells"), Error);
  in = {{1, 3, 2, 2}, TShape()};
  out = {TShape()};
  CHECK_THROWS_WITH_AS(
      MakeDeconvolution({{"kernel", "(3, 3)"}, {"num_group", "2"}})->InferShape(&in, &out, &aux),
      doctest::Contains("3 channels, not a multiple of num_group = 2"), Error);
  in = {{1, 3, 2}, TShape()};
  CHECK_THROWS_WITH_AS(MakeDeconvolution({{"kernel", "(3, 3)"}})->InferShape(&in, &out, &aux),
                       doctest::Contains("must be images [N, C, H, W] for a kernel with 2 axes"),
                       Error);
}

}  // namespace
}  // namespace mxtrain::test
