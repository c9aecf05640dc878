// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "mxtrain/base/format.h"
#include "tests/support/convolution_net.h"

namespace mxtrain::test {
namespace {

// The gradients of _ConvolutionWithBatchNorm with gates_gradient: of data, weight [, bias], and of
// what it is told of the batch norm.
Arrays GatedBack(const ConvolutionNet& net, const Arrays& in, const Values& head) {
  Arrays gradients = ConvolveBack(net, in[0], in[1], head);
  const size_t first = net.bias ? 3 : 2, channels = static_cast<size_t>(net.data[1]);
  const Values &x = in[first], &mean = in[first + 1], &inverse = in[first + 2],
               &gamma = in[first + 3], &beta = in[first + 4];
  Values sums(channels), along(channels);
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t c = i / static_cast<size_t>(net.data.Product(2, 4)) % channels;
    const double normal = (x[i] - mean[c]) * inverse[c];
    double& g = gradients[0][i];
    if (normal * gamma[c] + beta[c] <= 0) g = 0;
    sums[c] += g;
    along[c] += g * normal;
  }
  gradients.insert(gradients.end(), {{}, sums, along, {}, {}});
  return gradients;
}

TEST_CASE("_ConvolutionWithBatchNorm: sums of the output; a gradient that has passed ReLU") {
  for (const ConvolutionNet& net :
       {ConvolutionNet{
            .data = {2, 3, 5, 4}, .kernel = {3, 3}, .pad = {1, 1}, .filters = 4, .bias = false},
        ConvolutionNet{.data = {3, 2, 4, 4}, .kernel = {2, 1}, .filters = 5},
        ConvolutionNet{.data = {2, 16, 3, 3}, .kernel = {1, 1}, .filters = 16, .bias = false}}) {
    for (const bool sums : {false, true}) {
      for (const bool gates : {false, true}) {
        OperatorCase c = CaseOf(format("with batch norm, {} {}", sums, gates), net);
        c.op = "_ConvolutionWithBatchNorm";
        c.kwargs.insert(c.kwargs.end(), {{"sums_output", sums ? "True" : "False"},
                                         {"gates_gradient", gates ? "True" : "False"}});
        if (gates) {
          c.inputs.resize(c.shapes.size(), Uniform(-1, 1));
          c.inputs.insert(c.inputs.end(), {Uniform(-1, 1), Uniform(-0.5, 0.5), Uniform(0.5, 1.5),
                                           Uniform(0.5, 1.5), Uniform(-0.5, 0.5)});
          c.shapes.insert(c.shapes.end(),
                          {net.data, {net.data[1]}, {net.data[1]}, {net.data[1]}, {net.data[1]}});
        }
        c.forward = [net, sums](const Arrays& in, const Arrays&) {
          const Values out = Convolve(net, in[0], in[1], net.bias ? &in[2] : nullptr);
          if (!sums) return Arrays{out};
          Values totals(static_cast<size_t>(2 * net.filters));
          const int64_t pixels = OutputShape(net).Product(2, 4);
          for (size_t i = 0; i < out.size(); ++i) {
            const int64_t channel = static_cast<int64_t>(i) / pixels % net.filters;
            totals[channel] += out[i];
            totals[net.filters + channel] += out[i] * out[i];
          }
          return Arrays{out, totals};
        };
        c.gradient = [net, gates](const Arrays& in, const Arrays&, const Arrays& head) {
          return gates ? GatedBack(net, in, head[0]) : ConvolveBack(net, in[0], in[1], head[0]);
        };
        c.must_accept = {"ref"};
        RunCase(c);
        c.types = {DType::kFloat16, DType::kBfloat16};
        c.tolerance = {1 << 18, "sums of elements before or after they are rounded"};
        if (gates) {
          c.input_types.assign(c.shapes.size() - 4, DType::kUnknown);
          c.input_types.resize(c.shapes.size(), DType::kFloat32);
        }
        RunCase(c);
      }
    }
  }
}

TEST_CASE("_ConvolutionWithBatchNorm: types and gradients") {
  const auto both =
      TestRegistry().Create("_ConvolutionWithBatchNorm", {{"kernel", "(1, 1)"},
                                                          {"num_filter", "3"},
                                                          {"sums_output", "True"},
                                                          {"gates_gradient", "True"}});
  std::vector<DType> in(8, DType::kUnknown), out(2, DType::kUnknown), aux;
  in[0] = DType::kFloat16;
  CHECK(both->InferType(&in, &out, &aux));
  constexpr DType kNarrow = DType::kFloat16, kWide = DType::kFloat32;
  CHECK(in == std::vector<DType>{kNarrow, kNarrow, kNarrow, kNarrow, kWide, kWide, kWide, kWide});
  CHECK(out == std::vector<DType>{kNarrow, kWide});
  for (int i = 0; i < 8; ++i) CHECK(both->HasGradient(i) == (i < 3 || i == 4 || i == 5));
  std::vector<TShape> shapes(8), results(2), none;
  shapes[0] = {2, 5, 4, 4};
  CHECK(both->InferShape(&shapes, &results, &none));
  CHECK(shapes[3] == shapes[0]);
  CHECK(shapes[7] == TShape{5});
  CHECK(results[1] == TShape{2, 3});
}

}  // namespace
}  // namespace mxtrain::test
