// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "mxtrain/base/format.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

OperatorCase ElementwiseSumCase(int count, const TShape& shape) {
  OperatorCase c;
  c.name = format("ElementWiseSum of {}, {}", count, shape.ToString());
  c.op = "ElementWiseSum";
  c.kwargs = {{"num_args", format("{}", count)}};
  c.shapes.assign(static_cast<size_t>(count), shape);
  c.inputs = {Uniform(-2, 2)};
  c.forward = [](const Arrays& in, const Arrays&) {
    Values sum(in[0].size(), 0.0);
    for (const Values& x : in) sum = Apply(sum, x, std::plus<>());
    return Arrays{sum};
  };
  c.gradient = [](const Arrays& in, const Arrays&, const Arrays& head) {
    return Arrays(in.size(), head[0]);
  };
  c.types = kAllFloatingTypes;
  c.tolerance = {8, "a sum of few numbers"};
  c.must_accept = {"simd"};
  return c;
}

TEST_CASE("ElementWiseSum") {
  for (const int count : {1, 2, 3, 5}) {
    for (const TShape& shape : {TShape{1}, TShape{0, 3}, TShape{3, 5, 7}, TShape{2, 11, 3, 3}})
      RunCase(ElementwiseSumCase(count, shape));
  }
  RunCase(ElementwiseSumCase(3, {5, 7001}));
}

TEST_CASE("ElementWiseSum: its gradients equal its head gradient") {
  const auto property = TestRegistry().Create("add_n", {{"num_args", "2"}});
  CHECK(property->ListArguments() == std::vector<std::string>{"arg0", "arg1"});
  CHECK(property->BackwardIdentityOption() == std::vector<InplacePair>{{0, 0}, {0, 1}});
  CHECK(property->ForwardIdentityOption().empty());
  CHECK_THROWS_AS(TestRegistry().Create("add_n", {}), Error);
  CHECK_THROWS_AS(TestRegistry().Create("add_n", {{"num_args", "0"}}), Error);
  std::vector<TShape> in = {TShape{-1, 3}, TShape{4, 3}}, out(1), aux;
  CHECK(property->InferShape(&in, &out, &aux));
  CHECK(in[0] == TShape{4, 3});
  in[1] = {5, 3};
  CHECK_THROWS_WITH_AS(property->InferShape(&in, &out, &aux),
                       "ElementWiseSum: arg1 has shape [5, 3], but [4, 3] was expected", Error);
}

}  // namespace
}  // namespace mxtrain::test
