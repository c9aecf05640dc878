// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

void RunSoftmaxActivation(const std::string& mode, const TShape& shape) {
  OperatorCase c;
  c.name = "SoftmaxActivation " + mode + " " + shape.ToString();
  c.op = "SoftmaxActivation";
  c.kwargs = {{"mode", mode}};
  c.shapes = {shape};
  c.inputs = {Uniform(-3, 3)};
  const bool channel = mode == "channel";
  const int64_t inner = channel ? shape.Product(2, shape.ndim()) : 1;
  const int64_t classes = channel ? shape[1] : shape.Product(1, shape.ndim());
  c.forward = [=](const Arrays& in, const Arrays&) {
    Values y(in[0].size());
    for (int64_t n = 0; n < shape[0]; ++n) {
      for (int64_t i = 0; i < inner; ++i) {
        double sum = 0;
        for (int64_t k = 0; k < classes; ++k) sum += std::exp(in[0][(n * classes + k) * inner + i]);
        for (int64_t k = 0; k < classes; ++k)
          y[(n * classes + k) * inner + i] = std::exp(in[0][(n * classes + k) * inner + i]) / sum;
      }
    }
    return Arrays{y};
  };
  c.types = kAllFloatingTypes;
  c.tolerance = {16, "exponentials and their sum"};
  RunCase(c);
}

TEST_CASE("SoftmaxActivation") {
  RunSoftmaxActivation("instance", {5, 7});
  RunSoftmaxActivation("instance", {1, 1});
  RunSoftmaxActivation("instance", {3, 2, 3, 2});
  RunSoftmaxActivation("instance", {0, 3});
  RunSoftmaxActivation("channel", {3, 5, 7});
  RunSoftmaxActivation("channel", {2, 11, 3, 2});
}

TEST_CASE("SoftmaxActivation: channels need an axis after them") {
  const auto property = TestRegistry().Create("SoftmaxActivation", {{"mode", "channel"}});
  std::vector<TShape> in = {TShape{4, 3}}, out(1), aux;
  CHECK_THROWS_WITH_AS(property->InferShape(&in, &out, &aux),
                       doctest::Contains("mode channel needs at least 3 axes"), Error);
}

}  // namespace
}  // namespace mxtrain::test
