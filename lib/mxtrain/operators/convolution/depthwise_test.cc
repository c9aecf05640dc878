// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "tests/support/convolution_net.h"

namespace mxtrain::test {
namespace {

// Windows and strides that a GPU has loops for, on images that end within their blocks.
TEST_CASE("Convolution: depthwise, by packs of channels on a GPU") {
  const auto run = [](const std::string& name, ConvolutionNet net, bool activation = false) {
    net.filters = net.groups = net.data[1];
    net.bias = !activation && net.data[1] == 16;
    if (activation) net.act = "relu6", net.sum = true, net.bias = true;
    OperatorCase c = CaseOf("depthwise, in packs, " + name, net);
    const auto examine = [&] {
      for (const KernelOutcome& kernel : RunCase(c).kernels) {
        if (kernel.kernel == "depthwise") CHECK(kernel.refusal == "");
      }
    };
    c.types = {DType::kFloat16, DType::kBfloat16};
    examine();
    c.types = {DType::kFloat32};
    c.math = Math::kTf32;
    examine();
  };
  run("3x3", {.data = {2, 16, 6, 7}, .kernel = {3, 3}, .pad = {1, 1}});
  run("3x3, stride", {.data = {2, 24, 9, 8}, .kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1}});
  run("3x3, stride, without padding", {.data = {1, 16, 8, 11}, .kernel = {3, 3}, .stride = {2, 2}});
  run("5x5", {.data = {1, 16, 7, 9}, .kernel = {5, 5}, .pad = {2, 2}});
  run("5x5, stride", {.data = {3, 8, 12, 6}, .kernel = {5, 5}, .stride = {2, 2}, .pad = {2, 2}});
  run("7x7, an image smaller than the window",
      {.data = {2, 16, 4, 5}, .kernel = {7, 7}, .pad = {3, 3}});
  run("7x7, stride", {.data = {1, 8, 11, 10}, .kernel = {7, 7}, .stride = {2, 2}, .pad = {3, 3}});
  run("more padding than usual", {.data = {1, 16, 3, 4}, .kernel = {3, 3}, .pad = {2, 2}});
  run("activation and sum", {.data = {2, 16, 6, 7}, .kernel = {3, 3}, .pad = {1, 1}}, true);
  run("activation and sum, stride",
      {.data = {1, 8, 7, 7}, .kernel = {5, 5}, .stride = {2, 2}, .pad = {2, 2}}, true);
}

}  // namespace
}  // namespace mxtrain::test
