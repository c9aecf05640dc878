// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/operator_case.h"
#include "tests/support/small_nets.h"

namespace mxtrain::test {
namespace {

TEST_CASE("DropPath drops whole samples in training") {
  constexpr int64_t kSamples = 400, kLength = 6;
  const std::unique_ptr<Runtime> runtime = NewRuntime();
  const Symbol net = Symbol::Create(TestRegistry(), "DropPath", "net", {{"p", "0.25"}},
                                    std::vector{Symbol::Variable("x")});
  Executor::BindRequest request;
  request.shapes = {{"x", {kSamples, 2, 3}}};
  request.grad_req["x"] = executor::GradReq::kWrite;
  request.is_train = true;
  const auto executor = Executor::SimpleBind(*runtime, net, request);
  SetValues(executor->arg("x"), Values(kSamples * kLength, 3.0));
  executor->Forward({});
  const Values y = GetValues(executor->outputs()[0]);
  const NDArray ones(*runtime, {kSamples, 2, 3});
  SetValues(ones, Values(kSamples * kLength, 1.0));
  executor->Backward({&ones, 1});
  const Values gradient = GetValues(executor->grad("x"));
  int64_t dropped = 0;
  for (int64_t n = 0; n < kSamples; ++n) {
    const auto first = static_cast<size_t>(n * kLength);
    const double factor = y[first] == 0 ? 0 : 1 / 0.75;
    dropped += factor == 0;
    for (size_t i = first; i < first + kLength; ++i) {
      CHECK(y[i] == doctest::Approx(3 * factor));
      CHECK(gradient[i] == doctest::Approx(factor));
    }
  }
  CHECK(std::abs(static_cast<double>(dropped) - 100) < 5 * std::sqrt(400 * 0.25 * 0.75));
}

TEST_CASE("DropPath is the identity in evaluation") {
  for (const TShape& shape : {TShape{3, 4, 2}, TShape{5}}) {
    OperatorCase c;
    c.op = "DropPath";
    c.name = "DropPath " + shape.ToString();
    c.kwargs = {{"p", "0.5"}};
    c.shapes = {shape};
    c.inputs = {Uniform(-2, 2)};
    c.is_train = false;
    c.forward = [](const Arrays& in, const Arrays&) { return Arrays{in[0]}; };
    c.types = kAllFloatingTypes;
    c.tolerance = {0, "a copy"};
    RunCase(c);
  }
  CHECK_THROWS_AS(TestRegistry().Create("DropPath", {{"p", "1"}}), Error);
}

TEST_CASE("element_mask") {
  for (const TShape& shape : {TShape{3, 4, 2}, TShape{5}, TShape{0, 2}}) {
    OperatorCase c;
    c.op = "element_mask";
    c.name = "element_mask " + shape.ToString();
    c.shapes = {shape, {shape[0]}};
    c.inputs = {Uniform(-2, 2), Cycle({0, 1, 0.5})};
    const int64_t length = shape.Product(1, shape.ndim());
    c.forward = [length](const Arrays& in, const Arrays&) {
      Values y = in[0];
      for (size_t i = 0; i < y.size(); ++i) y[i] *= in[1][i / static_cast<size_t>(length)];
      return Arrays{y};
    };
    c.gradient = [length](const Arrays& in, const Arrays&, const Arrays& head) {
      Values dx = head[0];
      for (size_t i = 0; i < dx.size(); ++i) dx[i] *= in[1][i / static_cast<size_t>(length)];
      return Arrays{dx, Values(in[1].size(), 0.0)};
    };
    c.tolerance = {1, "a product"};
    RunCase(c);
  }
}

}  // namespace
}  // namespace mxtrain::test
