// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

TEST_CASE("L2Normalization by its definition") {
  const TShape shape{2, 3, 4, 5};
  for (const char* mode : {"instance", "channel", "spatial"}) {
    OperatorCase c;
    c.op = "L2Normalization";
    c.name = format("L2Normalization {}", mode);
    c.kwargs = {{"mode", mode}, {"eps", "0.001"}};
    c.shapes = {shape};
    c.inputs = {Uniform(-2, 2)};
    c.forward = [mode = std::string(mode)](const Arrays& in, const Arrays&) {
      // The group of an element, by its indices.
      const auto group = [&](size_t i) {
        const size_t place = i % 20, channel = i / 20 % 3, sample = i / 60;
        return mode == "instance"  ? sample
               : mode == "channel" ? sample * 20 + place
                                   : sample * 3 + channel;
      };
      Values sums(60), y(in[0].size());
      for (size_t i = 0; i < y.size(); ++i) sums[group(i)] += in[0][i] * in[0][i];
      for (size_t i = 0; i < y.size(); ++i) y[i] = in[0][i] / std::sqrt(sums[group(i)] + 0.001);
      return Arrays{y};
    };
    c.tolerance = {32, "a sum of squares and its root"};
    RunCase(c);
  }
}

TEST_CASE("L2Normalization: numbers whose squares float16 cannot hold") {
  OperatorCase c;
  c.op = c.name = "L2Normalization";
  c.shapes = {TShape{2, 2}};
  c.inputs = {Cycle({200, 400, 300, -400})};
  c.forward = [](const Arrays& in, const Arrays&) {
    Values y = in[0];
    for (size_t i = 0; i < 4; ++i) y[i] /= std::hypot(in[0][i / 2 * 2], in[0][i / 2 * 2 + 1]);
    return Arrays{y};
  };
  c.types = kAllFloatingTypes;
  c.tolerance = {32, "a norm and a division"};
  RunCase(c);
}

TEST_CASE("L2Normalization: spatial needs places") {
  const auto norm = TestRegistry().Create("L2Normalization", {{"mode", "spatial"}});
  std::vector<TShape> in = {TShape{2, 3}}, out(1), aux;
  CHECK_THROWS_WITH(norm->InferShape(&in, &out, &aux), doctest::Contains("3 axes or more"));
}

}  // namespace
}  // namespace mxtrain::test
