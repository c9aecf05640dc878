// SPDX-License-Identifier: Apache-2.0
// Convolutions of one, two and three spatial axes, with padding of one side.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/support/indices.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

// Sequences and volumes: every product of the definition, with gradients of its factors.
struct AnyConvolution {
  TShape data, kernel, stride, pad, dilate;
  int64_t filters = 1, groups = 1;
  bool bias = true;
  TShape after = {};  // padding after the data; empty: as before them

  int64_t pad_after(int i) const { return after.has_rank() ? after[i] : pad[i]; }
  TShape output() const {
    TShape out = data;
    out[1] = filters;
    for (int i = 0; i < kernel.ndim(); ++i) {
      const int64_t reach = dilate[i] * (kernel[i] - 1) + 1;
      out[2 + i] = (data[2 + i] + pad[i] + pad_after(i) - reach) / stride[i] + 1;
    }
    return out;
  }
  TShape weight() const {
    TShape shape = data;
    shape[0] = filters;
    shape[1] = data[1] / groups;
    for (int i = 0; i < kernel.ndim(); ++i) shape[2 + i] = kernel[i];
    return shape;
  }
  // f(element of the data, of the weight, of the output)
  template <typename F>
  void ForProducts(F f) const {
    ForIndices(output(), [&](const Index& to) {
      ForIndices(weight(), [&](const Index& tap) {
        if (tap[0] != to[1]) return;
        Index from = to;
        from[1] = to[1] / (filters / groups) * (data[1] / groups) + tap[1];
        for (int i = 0; i < kernel.ndim(); ++i) {
          const size_t axis = 2 + static_cast<size_t>(i);
          from[axis] = to[axis] * stride[i] + tap[axis] * dilate[i] - pad[i];
        }
        const int64_t at = OffsetOf(data, from);
        if (at >= 0) f(at, OffsetOf(weight(), tap), OffsetOf(output(), to));
      });
    });
  }
};

void RunAnyConvolution(const std::string& name, const AnyConvolution& net,
                       std::vector<std::string> must_accept) {
  OperatorCase c;
  c.name = "convolution, " + name;
  c.op = "Convolution";
  std::vector<int64_t> sides(net.pad.begin(), net.pad.end());
  if (net.after.has_rank()) sides.insert(sides.end(), net.after.begin(), net.after.end());
  const TShape pad{std::span<const int64_t>(sides)};
  c.kwargs = {{"kernel", net.kernel.ToTuple()},
              {"stride", net.stride.ToTuple()},
              {"pad", pad.ToTuple()},
              {"dilate", net.dilate.ToTuple()},
              {"num_filter", std::to_string(net.filters)},
              {"num_group", std::to_string(net.groups)},
              {"no_bias", net.bias ? "False" : "True"}};
  c.shapes = {net.data, net.weight()};
  if (net.bias) c.shapes.push_back({net.filters});
  c.inputs = {Uniform(-1, 1)};
  const TShape out = net.output();
  const auto channel = [out](size_t i) {
    return i / static_cast<size_t>(out.Product(2, out.ndim())) % static_cast<size_t>(out[1]);
  };
  c.forward = [=](const Arrays& in, const Arrays&) {
    Values result(static_cast<size_t>(out.Size()));
    for (size_t i = 0; net.bias && i < result.size(); ++i) result[i] = in[2][channel(i)];
    net.ForProducts([&](int64_t data, int64_t weight, int64_t at) {
      result[static_cast<size_t>(at)] +=
          in[0][static_cast<size_t>(data)] * in[1][static_cast<size_t>(weight)];
    });
    return Arrays{result};
  };
  c.gradient = [=](const Arrays& in, const Arrays&, const Arrays& head) {
    Arrays gradients{Values(in[0].size()), Values(in[1].size())};
    net.ForProducts([&](int64_t data, int64_t weight, int64_t at) {
      const double h = head[0][static_cast<size_t>(at)];
      gradients[0][static_cast<size_t>(data)] += h * in[1][static_cast<size_t>(weight)];
      gradients[1][static_cast<size_t>(weight)] += h * in[0][static_cast<size_t>(data)];
    });
    if (net.bias) {
      Values sums(static_cast<size_t>(net.filters));
      for (size_t i = 0; i < head[0].size(); ++i) sums[channel(i)] += head[0][i];
      gradients.push_back(sums);
    }
    return gradients;
  };
  const double terms = static_cast<double>(c.shapes[1].Product(1, c.shapes[1].ndim()) +
                                           net.data[0] * out.Product(2, out.ndim()));
  c.tolerance = {16 + terms / 4, "sums of as many products, in any order"};
  c.must_accept = std::move(must_accept);
  RunCase(c);
}

TEST_CASE("Convolution: sequences") {
  RunAnyConvolution("sequence", {{2, 16, 9}, {3}, {1}, {1}, {1}, 16}, {"ref", "onednn"});
  RunAnyConvolution("sequence, strided and dilated", {{2, 8, 13}, {4}, {2}, {3}, {2}, 8},
                    {"ref", "onednn"});
  RunAnyConvolution("sequence of one channel", {{3, 1, 20}, {5}, {3}, {0}, {1}, 7}, {"ref"});
  RunAnyConvolution("sequence in groups", {{1, 6, 8}, {3}, {1}, {1}, {1}, 4, 2, false}, {"ref"});
  RunAnyConvolution("no sequences", {{0, 3, 8}, {3}, {1}, {1}, {1}, 4}, {"ref"});
}

TEST_CASE("Convolution: volumes") {
  RunAnyConvolution("volume", {{1, 16, 4, 5, 3}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, 16},
                    {"ref", "onednn"});
  RunAnyConvolution("uneven volume",
                    {{2, 3, 5, 4, 7}, {2, 3, 4}, {2, 1, 3}, {1, 0, 2}, {1, 1, 2}, 5, 1, false},
                    {"ref"});
  RunAnyConvolution("volume in groups",
                    {{1, 4, 3, 3, 3}, {2, 2, 2}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}, 6, 2}, {"ref"});
}

TEST_CASE("Convolution: padding of one side") {
  RunAnyConvolution("after the data, as TensorFlow pads",
                    {{2, 16, 6, 6}, {3, 3}, {2, 2}, {0, 0}, {1, 1}, 16, 1, true, {1, 1}},
                    {"ref", "onednn"});
  RunAnyConvolution("uneven", {{1, 8, 5, 7}, {3, 2}, {1, 2}, {2, 0}, {1, 2}, 8, 1, false, {0, 3}},
                    {"ref", "onednn"});
  RunAnyConvolution("before a sequence", {{2, 16, 9}, {4}, {1}, {3}, {1}, 16, 1, true, {0}},
                    {"ref", "onednn"});
  RunAnyConvolution("depthwise",
                    {{1, 16, 6, 6}, {3, 3}, {2, 2}, {0, 1}, {1, 1}, 16, 16, true, {1, 0}},
                    {"ref", "grouped"});
  const auto conv = TestRegistry().Create(
      "Convolution",
      {{"kernel", "(3, 3)"}, {"num_filter", "8"}, {"pad", "(0, 1, 1, 2)"}, {"no_bias", "True"}});
  std::vector<TShape> in{{1, 4, 6, 5}, TShape()}, out(1), aux;
  CHECK(conv->InferShape(&in, &out, &aux));
  CHECK(out[0] == TShape{1, 8, 5, 6});
  in = {TShape(), {8, 4, 3, 3}};
  CHECK(conv->InferShape(&in, &out, &aux));
  CHECK(in[0] == TShape{1, 4, 6, 5});
  const auto even = TestRegistry().Create(
      "Convolution", {{"kernel", "(3, 3)"}, {"num_filter", "8"}, {"pad", "(1, 2, 1, 2)"}});
  for (const auto& [key, value] : even->GetParams()) {
    if (key == "pad") CHECK(value == "(1, 2)");
  }
  CHECK_THROWS_WITH_AS(
      TestRegistry().Create("Convolution",
                            {{"kernel", "(3, 3)"}, {"num_filter", "8"}, {"pad", "(1, 2, 1)"}}),
      doctest::Contains("pad = (1, 2, 1) has 3 entries"), Error);
}

TEST_CASE("_ConvolutionActivation: sequences, in inference") {
  const AnyConvolution net{{2, 16, 9}, {3}, {1}, {1}, {1}, 16};
  OperatorCase c;
  c.name = "sequence, relu";
  c.op = "_ConvolutionActivation";
  c.kwargs = {{"kernel", "(3,)"}, {"pad", "(1,)"}, {"num_filter", "16"}, {"act", "relu"}};
  c.shapes = {net.data, net.weight(), {16}};
  c.inputs = {Uniform(-1, 1)};
  c.is_train = c.backward = false;
  c.forward = [=](const Arrays& in, const Arrays&) {
    Values result(static_cast<size_t>(net.output().Size()));
    for (size_t i = 0; i < result.size(); ++i) result[i] = in[2][i / 9 % 16];
    net.ForProducts([&](int64_t data, int64_t weight, int64_t at) {
      result[static_cast<size_t>(at)] +=
          in[0][static_cast<size_t>(data)] * in[1][static_cast<size_t>(weight)];
    });
    return Arrays{Apply(result, [](double x) { return std::max(x, 0.0); })};
  };
  c.tolerance = {32, "sums of 48 products"};
  c.must_accept = {"ref", "onednn"};
  RunCase(c);
}

}  // namespace
}  // namespace mxtrain::test
