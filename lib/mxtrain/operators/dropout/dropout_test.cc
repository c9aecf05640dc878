// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>

#include "mxtrain/base/format.h"
#include "mxtrain/device/blocked_layout.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

OperatorCase DropoutCase(const Kwargs& kwargs, const TShape& shape) {
  OperatorCase c;
  c.name = "Dropout " + shape.ToString();
  c.op = "Dropout";
  c.kwargs = kwargs;
  c.shapes = {shape};
  c.inputs = {UniformAwayFrom(-2, 2, {0})};
  c.types = kAllFloatingTypes;
  c.tolerance = {2, "one product"};
  return c;
}

// Every element is 0 or x / (1 - p), the fraction of zeros is p within five standard deviations,
// and the gradient has the same factors.
std::vector<std::string> CheckDrop(const CaseResult& r, double p) {
  std::vector<std::string> problems;
  double dropped = 0;
  const double scale = 1 / (1 - static_cast<double>(static_cast<float>(p))),
               slack = r.type == DType::kFloat64   ? 1e-7
                       : r.type == DType::kFloat32 ? 1e-6
                                                   : 0.02;
  for (size_t i = 0; i < r.in[0].size(); ++i) {
    const double x = r.in[0][i], y = r.out[0][i];
    dropped += y == 0;
    const double factor = y == 0 ? 0 : scale;
    if (std::abs(y - x * factor) > slack * 4 * scale)
      problems.push_back(format("element {} is {} for {}", i, y, x));
    if (std::abs(r.in_grad[0][i] - r.head[0][i] * factor) > slack * 4 * scale)
      problems.push_back(format("gradient {} has a different factor", i));
  }
  const double n = static_cast<double>(r.in[0].size());
  if (std::abs(dropped - n * p) > 5 * std::sqrt(n * p * (1 - p)))
    problems.push_back(format("{} of {} elements dropped", dropped, n));
  return problems;
}

TEST_CASE("Dropout in training") {
  for (const double p : {0.5, 0.1, 0.9}) {
    OperatorCase c = DropoutCase({{"p", format("{}", p)}}, {37, 101});
    c.check = [p](const CaseResult& r) { return CheckDrop(r, p); };
    RunCase(c);
  }
  OperatorCase always = DropoutCase({{"mode", "always"}}, {37, 101});
  always.check = [](const CaseResult& r) { return CheckDrop(r, 0.5); };
  always.is_train = false;
  RunCase(always);
}

TEST_CASE("Dropout is the identity in evaluation, and in training with p = 0") {
  for (const bool is_train : {false, true}) {
    for (const TShape& shape : {TShape{3, 5, 7}, TShape{2, 5, 3, 3}, TShape{2, 16, 3, 3}}) {
      OperatorCase c = DropoutCase(is_train ? Kwargs{{"p", "0"}} : Kwargs{}, shape);
      c.is_train = is_train;
      c.forward = [](const Arrays& in, const Arrays&) {
        return Arrays{in[0], Values(in[0].size(), 1.0)};
      };
      c.gradient = [](const Arrays&, const Arrays&, const Arrays& head) { return Arrays{head[0]}; };
      c.tolerance = {0, "a copy"};
      RunCase(c);
    }
  }
}

TEST_CASE("Dropout: a draw for each sample, in every layout that keeps samples apart") {
  for (const TShape& shape : {TShape{40, 16, 3, 5}, TShape{40, 5, 3, 2}, TShape{40, 7}}) {
    OperatorCase c =
        DropoutCase({{"axes", shape.ndim() == 2 ? "(1,)" : "(1, 2, 3)"}, {"p", "0.25"}}, shape);
    c.check = [shape](const CaseResult& r) {
      std::vector<std::string> problems;
      const int64_t length = shape.Size() / shape[0];
      int64_t dropped = 0;
      for (int64_t i = 0; i < shape.Size(); ++i) {
        const double factor = r.out[1][i / length];
        dropped += i % length == 0 && factor == 0;
        if (factor != 0 && std::abs(factor - 4.0 / 3) > 0.01)
          problems.push_back(format("factor {}", factor));
        if (std::abs(r.out[0][i] - r.in[0][i] * factor) > 0.02)
          problems.push_back(format("element {} is {} for {}", i, r.out[0][i], r.in[0][i]));
        if (std::abs(r.in_grad[0][i] - r.head[0][i] * factor) > 0.02)
          problems.push_back(format("gradient {} has a different factor", i));
      }
      if (dropped < 1 || dropped > 25) problems.push_back(format("{} samples dropped", dropped));
      return problems;
    };
    RunCase(c);
  }
}

TEST_CASE("Dropout keeps a layout for a draw per sample if the samples lie apart there") {
  const auto dropout = TestRegistry().Create("Dropout", {{"p", "0.5"}, {"axes", "(1, 2, 3)"}});
  const std::vector<TensorSpec> in = {{TShape{16, 16, 3, 5}, DType::kFloat32, {}}},
                                out = {in[0], {TShape{16, 1, 1, 1}, DType::kFloat32, {}}};
  const std::vector<OpReqType> req(2, OpReqType::kWriteTo);
  for (const auto& [offered, taken] :
       {std::pair{"aBcd8b", "aBcd8b"}, {"acdb", "acdb"}, {"Abcd16a", "plain"}}) {
    const std::vector<std::optional<Layout>> layouts = {
        TestBackend().Intern(BlockedLayout::FromName(offered))};
    PlanRequest request;
    request.is_train = true;
    request.in = in, request.out = out, request.in_layout = layouts, request.out_req = req;
    const auto plan = TestRegistry().Kernels("Dropout", DeviceType::kCPU)[0]->plan(
        *dropout, request, TestBackend());
    REQUIRE(plan);
    CHECK(plan->in[0].Name() == taken);
    CHECK(plan->out[0].Name() == taken);
    CHECK(plan->out[1].plain());
  }
}

TEST_CASE("Dropout shares draws along axes") {
  OperatorCase c = DropoutCase({{"axes", "(1,)"}, {"p", "0.25"}}, {20, 6, 30});
  c.check = [](const CaseResult& r) {
    std::vector<std::string> problems;
    for (int64_t n = 0; n < 20; ++n) {
      for (int64_t i = 0; i < 30; ++i) {
        for (int64_t k = 1; k < 6; ++k) {
          if ((r.out[0][n * 180 + i] == 0) != (r.out[0][(n * 6 + k) * 30 + i] == 0))
            problems.push_back(format("row {} column {} differs", n, i));
        }
      }
    }
    if (r.out[1].size() != 600) problems.push_back("the mask is not [20, 1, 30]");
    return problems;
  };
  RunCase(c);
}

TEST_CASE("Dropout: parameters and shapes") {
  CHECK_THROWS_AS(TestRegistry().Create("Dropout", {{"p", "1.5"}}), Error);
  CHECK_THROWS_WITH_AS(TestRegistry().Create("Dropout", {{"p", "1"}}),
                       doctest::Contains("drops every element"), Error);
  const auto property = TestRegistry().Create("Dropout", {{"axes", "(2,)"}});
  CHECK(property->NumVisibleOutputs() == 1);
  std::vector<TShape> in = {TShape{4, 3}}, out(2), aux;
  CHECK_THROWS_WITH_AS(property->InferShape(&in, &out, &aux), doctest::Contains("includes axis 2"),
                       Error);
  in = {TShape{}}, out = {TShape{4, 3, 5}, TShape{}};
  CHECK(property->InferShape(&in, &out, &aux));
  CHECK(in[0] == TShape{4, 3, 5});
  CHECK(out[1] == TShape{4, 3, 1});
}

}  // namespace
}  // namespace mxtrain::test
