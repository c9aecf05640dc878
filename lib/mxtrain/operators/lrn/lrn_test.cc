// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

void RunLrn(const TShape& shape, int size, double alpha, double beta, double k,
            std::vector<DType> types = {DType::kFloat32, DType::kFloat64}) {
  OperatorCase c;
  c.name = "lrn " + shape.ToString();
  c.op = "LRN";
  c.kwargs = {{"nsize", std::to_string(size)},
              {"alpha", std::to_string(alpha)},
              {"beta", std::to_string(beta)},
              {"knorm", std::to_string(k)}};
  c.shapes = {shape};
  c.inputs = {Uniform(-2, 2)};
  c.forward = [=](const Arrays& in, const Arrays&) {
    const int64_t channels = shape[1], area = shape[2] * shape[3];
    Values out(in[0].size()), norm(in[0].size(), k);
    for (int64_t n = 0; n < shape[0]; ++n) {
      for (int64_t to = 0; to < channels; ++to) {
        for (int64_t i = 0; i < area; ++i) {
          const int64_t at = (n * channels + to) * area + i;
          for (int64_t from = 0; from < channels; ++from) {
            const double x = in[0][(n * channels + from) * area + i];
            if (std::abs(from - to) <= size / 2) norm[at] += alpha / size * x * x;
          }
          out[at] = in[0][at] * std::pow(norm[at], -beta);
        }
      }
    }
    return Arrays{out, norm};
  };
  c.tolerance = {64, "powers"};
  c.types = std::move(types);
  RunCase(c);
}

TEST_CASE("LRN") {
  RunLrn({2, 8, 2, 3}, 5, 0.5, 0.75, 2);
  RunLrn({1, 7, 3, 1}, 3, 1, 0.5, 1);
  RunLrn({1, 1, 2, 2}, 5, 0.25, 0.75, 2, kAllFloatingTypes);
  RunLrn({2, 9, 9, 15}, 7, 0.5, 0.75, 1);  // several groups of pixels, the last one short
  RunLrn({1, 3, 8, 8}, 9, 2, 1.25, 0.5);   // windows wider than all channels
  CHECK_THROWS_WITH_AS(TestRegistry().Create("LRN", {{"nsize", "4"}}), doctest::Contains("odd"),
                       Error);
}

}  // namespace
}  // namespace mxtrain::test
