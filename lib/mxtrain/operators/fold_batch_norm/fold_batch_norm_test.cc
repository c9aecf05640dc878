// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

void RunFold(bool bias, bool fix_gamma) {
  OperatorCase c;
  c.name = "fold batch norm";
  c.op = "_FoldBatchNorm";
  c.kwargs = {
      {"eps", "0.0625"}, {"fix_gamma", fix_gamma ? "1" : "0"}, {"no_bias", bias ? "0" : "1"}};
  c.shapes = {{5, 2, 3, 3}};
  if (bias) c.shapes.push_back({5});
  for (int i = 0; i < 4; ++i) c.shapes.push_back({5});
  c.inputs = {Uniform(0.5, 2)};
  c.forward = [=](const Arrays& in, const Arrays&) {
    const size_t first = bias ? 2 : 1;
    Values weight = in[0], shift(5);
    for (size_t o = 0; o < 5; ++o) {
      const double scale = (fix_gamma ? 1 : in[first][o]) / std::sqrt(in[first + 3][o] + 0.0625);
      for (size_t i = 0; i < 18; ++i) weight[o * 18 + i] *= scale;
      shift[o] = ((bias ? in[1][o] : 0) - in[first + 2][o]) * scale + in[first + 1][o];
    }
    return Arrays{weight, shift};
  };
  c.backward = false;
  c.is_train = false;
  c.tolerance = {16, "a root, a division and a product"};
  c.types = kAllFloatingTypes;
  RunCase(c);
}

TEST_CASE("_FoldBatchNorm") {
  for (bool bias : {false, true}) {
    for (bool fix_gamma : {false, true}) RunFold(bias, fix_gamma);
  }
}

}  // namespace
}  // namespace mxtrain::test
