// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "mxtrain/device/blocked_layout.h"
#include "tests/support/case_parts.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

// f of the elements of a and b that belong to each index of the common shape.
Values Broadcast(const TShape& a_shape, const Values& a, const TShape& b_shape, const Values& b,
                 BinaryFunction f) {
  TShape whole = a_shape;
  for (int i = 0; i < whole.ndim(); ++i) whole[i] = std::max(a_shape[i], b_shape[i]);
  Values out;
  for (int64_t index = 0; index < whole.Size(); ++index) {
    int64_t rest = index, at_a = 0, at_b = 0, a_step = 1, b_step = 1;
    for (int i = whole.ndim() - 1; i >= 0; --i) {
      const int64_t k = rest % whole[i];
      rest /= whole[i];
      at_a += k % a_shape[i] * a_step;
      at_b += k % b_shape[i] * b_step;
      a_step *= a_shape[i];
      b_step *= b_shape[i];
    }
    out.push_back(f(a[static_cast<size_t>(at_a)], b[static_cast<size_t>(at_b)]));
  }
  return out;
}

OperatorCase BroadcastBinaryCase(const char* op, const TShape& a, const TShape& b,
                                 BinaryFunction f) {
  OperatorCase c;
  c.name = format("{} of {} and {}", op, a.ToString(), b.ToString());
  c.op = op;
  c.shapes = {a, b};
  c.forward = [=](const Arrays& in, const Arrays&) {
    return Arrays{Broadcast(a, in[0], b, in[1], f)};
  };
  c.tolerance = {32, "a few operations and a short sum"};
  c.must_accept = {"simple"};
  return c;
}

TEST_CASE("axes of length one are repeated, and summed over in the gradient") {
  const Generator low = Cycle({-1.5, 0.25, 1.75, -0.25, 0.75}),
                  high = Cycle({-1, -0.5, 1.25, 1.5, 0.5, 2, -1.75});
  const struct {
    const char* op;
    BinaryFunction f;
    Generator a, b;
  } cases[] = {
      {"broadcast_add", [](double a, double b) { return a + b; }, low, high},
      {"broadcast_sub", [](double a, double b) { return a - b; }, low, high},
      {"broadcast_mul", [](double a, double b) { return a * b; }, low, high},
      {"broadcast_div", [](double a, double b) { return a / b; }, low, high},
      {"broadcast_power", [](double a, double b) { return std::exp2(b * std::log2(a)); },
       Uniform(0.5, 2), low},
      {"broadcast_maximum", [](double a, double b) { return std::fmax(a, b); }, low, high},
      {"broadcast_minimum", [](double a, double b) { return std::fmin(a, b); }, low, high},
      {"broadcast_mod", [](double a, double b) { return a - b * std::floor(a / b); },
       Uniform(2.1, 2.4), Uniform(0.85, 0.95)},
      {"broadcast_hypot", [](double a, double b) { return std::sqrt(a * a + b * b); }, low, high},
      {"broadcast_equal", [](double a, double b) { return a == b ? 1.0 : 0.0; }, low, high},
      {"broadcast_greater", [](double a, double b) { return a > b ? 1.0 : 0.0; }, low, high},
      {"broadcast_lesser_equal", [](double a, double b) { return a > b ? 0.0 : 1.0; }, low, high},
      {"broadcast_logical_xor", [](double a, double b) { return (a == 0) == (b == 0) ? 0.0 : 1.0; },
       low, high},
  };
  for (const auto& t : cases) {
    OperatorCase c = BroadcastBinaryCase(t.op, {2, 1, 3}, {1, 4, 3}, t.f);
    c.inputs = {t.a, t.b};
    RunCase(c);
    c.name += ", equal shapes";
    c.shapes = {TShape{5}, TShape{5}};
    c.forward = [f = t.f](const Arrays& in, const Arrays&) {
      return Arrays{Apply(in[0], in[1], f)};
    };
    c.types = kAllFloatingTypes;
    RunCase(c);
  }
}

// Offered plain, in blocks of eight channels and channels last.
TEST_CASE("images and their channels in every layout") {
  const struct {
    const char* op;
    BinaryFunction f;
  } cases[] = {{"broadcast_add", [](double a, double b) { return a + b; }},
               {"broadcast_sub", [](double a, double b) { return a - b; }},
               {"broadcast_mul", [](double a, double b) { return a * b; }},
               {"broadcast_div", [](double a, double b) { return a / b; }},
               {"broadcast_maximum", [](double a, double b) { return std::fmax(a, b); }}};
  const std::pair<TShape, TShape> shapes[] = {
      {{2, 16, 3, 5}, {2, 16, 1, 1}}, {{1, 16, 1, 1}, {2, 16, 3, 5}},
      {{2, 16, 3, 5}, {2, 16, 1, 5}}, {{2, 16, 3, 5}, {1, 1, 3, 5}},
      {{2, 8, 3, 5}, {2, 1, 3, 1}},   {{2, 11, 3, 5}, {2, 11, 1, 1}},
      {{2, 11, 3, 5}, {2, 1, 3, 5}},  {{1, 16, 3, 5}, {2, 16, 1, 1}},
      {{2, 1, 3, 5}, {2, 1, 1, 1}},   {{2, 11, 3, 5}, {2, 11, 3, 5}},
      {{2, 16, 1, 1}, {2, 16, 1, 1}}};
  for (const auto& [op, f] : cases) {
    for (const auto& [a, b] : shapes) {
      OperatorCase c = BroadcastBinaryCase(op, a, b, f);
      c.inputs = {Cycle({-1.5, 0.25, 1.75, -0.25, 0.75}),
                  Cycle({-1, -0.5, 1.25, 1.5, 0.5, 2, -1.75})};
      c.tolerance = {256, "sums of thirty terms of up to seven"};
      RunCase(c);
    }
  }
}

TEST_CASE("sums over large images in every layout") {
  const auto product = [](double a, double b) { return a * b; };
  const TShape image = {1, 8, 64, 96}, gate = {1, 8, 1, 1};
  OperatorCase c = BroadcastBinaryCase("broadcast_mul", image, gate, product);
  c.inputs = {Uniform(-2, 2)};
  c.gradient = [=](const Arrays& in, const Arrays&, const Arrays& head) {
    Values sums(8, 0.0);
    for (size_t i = 0; i < in[0].size(); ++i) sums[i / (64 * 96)] += head[0][i] * in[0][i];
    return Arrays{Broadcast(image, head[0], gate, in[1], product), sums};
  };
  c.tolerance = {1024, "sums of 6144 products"};
  RunCase(c);
}

TEST_CASE("arrays lie as the larger one") {
  const auto layouts = [](const char* op, const TShape& a, const char* a_layout, const TShape& b,
                          const char* b_layout) {
    const auto property = TestRegistry().Create(op, {});
    std::vector<TShape> in = {a, b}, out(1), aux;
    REQUIRE(property->InferShape(&in, &out, &aux));
    const TensorSpec specs[] = {{a, DType::kFloat32, Layout()}, {b, DType::kFloat32, Layout()}},
                     whole{out[0], DType::kFloat32, Layout()};
    std::optional<Layout> offered[2];
    for (int i = 0; i < 2; ++i) {
      const std::string name = i == 0 ? a_layout : b_layout;
      if (name == "plain")
        offered[i] = Layout();
      else if (name != "free")
        offered[i] = TestBackend().Intern(BlockedLayout::FromName(name));
    }
    const OpReqType write = OpReqType::kWriteTo;
    PlanRequest request;
    request.in = specs;
    request.out = {&whole, 1};
    request.in_layout = offered;
    request.out_req = {&write, 1};
    const Plan plan = property->CreatePlan(TestRegistry(), request, TestBackend());
    return format("{} {} {}", plan.in[0].Name(), plan.in[1].Name(), plan.out[0].Name());
  };
  const TShape image = {2, 16, 3, 5}, gate = {2, 16, 1, 1}, odd = {2, 11, 3, 5};
  CHECK(layouts("broadcast_mul", image, "aBcd8b", gate, "plain") == "aBcd8b plain aBcd8b");
  CHECK(layouts("broadcast_mul", image, "aBcd8b", gate, "aBcd16b") == "aBcd8b aBcd16b aBcd8b");
  CHECK(layouts("broadcast_mul", gate, "free", image, "aBcd16b") == "aBcd16b aBcd16b aBcd16b");
  CHECK(layouts("broadcast_div", image, "acdb", {1, 1, 3, 5}, "plain") == "acdb plain acdb");
  CHECK(layouts("broadcast_add", image, "plain", image, "aBcd8b") == "aBcd8b aBcd8b aBcd8b");
  // Padding, which has to stay zero.
  CHECK(layouts("broadcast_mul", odd, "aBcd8b", {2, 11, 1, 1}, "plain") == "aBcd8b aBcd8b aBcd8b");
  CHECK(layouts("broadcast_div", odd, "aBcd8b", {2, 11, 1, 1}, "plain") == "plain plain plain");
  CHECK(layouts("broadcast_mul", odd, "aBcd8b", {2, 1, 3, 5}, "plain") == "plain plain plain");
  CHECK(layouts("broadcast_mul", {2, 1, 3, 5}, "aBcd8b", {2, 1, 1, 1}, "plain") ==
        "plain plain plain");
  // Blocks of another kind.
  CHECK(layouts("broadcast_mul", image, "Abcd2a", gate, "plain") == "plain plain plain");
}

TEST_CASE("shapes that do not broadcast") {
  const auto add = TestRegistry().Create("broadcast_plus", {});
  std::vector<TShape> in = {TShape{2, 3}, TShape{3, 3}}, out(1), aux;
  CHECK_THROWS_WITH(add->InferShape(&in, &out, &aux),
                    doctest::Contains("shapes [2, 3] and [3, 3] do not broadcast"));
}

}  // namespace
}  // namespace mxtrain::test
