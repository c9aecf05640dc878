// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

void RunMakeLoss(const std::string& op, const Kwargs& kwargs,
                 const std::function<double(const Values&)>& gradient) {
  for (const TShape& shape : {TShape{1}, TShape{0, 3}, TShape{4, 5}, TShape{3, 11, 2, 2}}) {
    OperatorCase c;
    c.name = op + " " + shape.ToString();
    c.op = op;
    c.kwargs = kwargs;
    c.shapes = {shape};
    c.inputs = {UniformAwayFrom(-1, 2, {0, 0.5}, 0.05)};
    c.forward = [](const Arrays& in, const Arrays&) { return Arrays{in[0]}; };
    c.gradient = [&](const Arrays& in, const Arrays&, const Arrays&) {
      return Arrays{Values(in[0].size(), gradient(in[0]))};
    };
    c.types = kAllFloatingTypes;
    c.tolerance = {1, "a division"};
    RunCase(c);
  }
}

TEST_CASE("MakeLoss") {
  RunMakeLoss("MakeLoss", {}, [](const Values&) { return 1.0; });
  RunMakeLoss("MakeLoss", {{"grad_scale", "0.25"}}, [](const Values&) { return 0.25; });
  RunMakeLoss(
      "MakeLoss", {{"grad_scale", "3"}, {"normalization", "valid"}, {"valid_thresh", "0.5"}},
      [](const Values& x) {
        return 3.0 / static_cast<double>(std::max<int64_t>(
                         1, std::count_if(x.begin(), x.end(), [](double v) { return v > 0.5; })));
      });
}

TEST_CASE("MakeLoss divides by the batch size") {
  OperatorCase c;
  c.name = "MakeLoss batch";
  c.op = "MakeLoss";
  c.kwargs = {{"normalization", "batch"}, {"grad_scale", "2"}};
  c.shapes = {{5, 3}};
  c.inputs = {Uniform(-1, 1)};
  c.forward = [](const Arrays& in, const Arrays&) { return Arrays{in[0]}; };
  c.gradient = [](const Arrays& in, const Arrays&, const Arrays&) {
    return Arrays{Values(in[0].size(), 2.0 / 5)};
  };
  RunCase(c);
}

TEST_CASE("make_loss is a different operator: ones, and an output called loss") {
  RunMakeLoss("make_loss", {}, [](const Values&) { return 1.0; });
  const auto property = TestRegistry().Create("make_loss", {});
  CHECK(property->ListOutputs() == std::vector<std::string>{"loss"});
  CHECK(!property->NeedsHeadGradient());
  CHECK_THROWS_AS(TestRegistry().Create("make_loss", {{"grad_scale", "1"}}), Error);
}

}  // namespace
}  // namespace mxtrain::test
