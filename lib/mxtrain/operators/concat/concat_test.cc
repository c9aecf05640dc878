// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "mxtrain/base/format.h"
#include "mxtrain/device/blocked_layout.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

OperatorCase ConcatCase(const std::vector<TShape>& shapes, int dim) {
  OperatorCase c;
  c.name = format("Concat of {} along {}", shapes.size(), dim);
  c.op = "Concat";
  c.kwargs = {{"num_args", format("{}", shapes.size())}, {"dim", format("{}", dim)}};
  c.shapes = shapes;
  c.inputs = {Uniform(-2, 2)};
  const int axis = dim < 0 ? dim + shapes[0].ndim() : dim;
  c.forward = [=](const Arrays& in, const Arrays&) {
    const int64_t outer = shapes[0].Product(0, axis),
                  inner = shapes[0].Product(axis + 1, shapes[0].ndim());
    Values y;
    for (int64_t o = 0; o < outer; ++o) {
      for (size_t k = 0; k < in.size(); ++k) {
        const int64_t run = shapes[k][axis] * inner;
        y.insert(y.end(), in[k].begin() + o * run, in[k].begin() + (o + 1) * run);
      }
    }
    return Arrays{y};
  };
  c.types = kAllFloatingTypes;
  c.tolerance = {0, "a copy"};
  return c;
}

TEST_CASE("Concat") {
  RunCase(ConcatCase({{3, 2}, {3, 4}, {3, 1}}, 1));
  RunCase(ConcatCase({{3, 2}}, 1));
  RunCase(ConcatCase({{3, 2}, {5, 2}}, 0));
  RunCase(ConcatCase({{2, 3, 4, 5}, {2, 7, 4, 5}}, 1));
  RunCase(ConcatCase({{2, 3, 4}, {2, 3, 1}}, -1));
  RunCase(ConcatCase({{2, 3, 4}, {2, 2, 4}}, -2));
  RunCase(ConcatCase({{2, 0}, {2, 3}}, 1));
  RunCase(ConcatCase({{0, 1}, {0, 3}}, 1));
  RunCase(ConcatCase({{120, 2}, {120, 1}, {120, 2}}, -1));
}

// Of rows of 16 bytes, which a GPU copies in one launch, sixteen arrays at most.
TEST_CASE("Concat of rows of words") {
  RunCase(ConcatCase({{5, 8}, {5, 24}, {5, 16}}, 1));
  RunCase(ConcatCase({{2, 8, 3, 5}, {2, 3, 3, 5}, {2, 16, 3, 5}}, 1));  // one that is not
  RunCase(ConcatCase({{16}, {8}, {24}}, 0));
  RunCase(ConcatCase({{3, 8}, {0, 8}, {2, 8}}, 0));
  std::vector<TShape> many;
  for (int i = 0; i < 35; ++i) many.push_back({3, 8 * (1 + i % 3)});
  RunCase(ConcatCase(many, 1));
}

TEST_CASE("Concat of one array is an alias") {
  const auto pairs = [](const char* num_args) {
    return TestRegistry().Create("Concat", {{"num_args", num_args}})->ForwardIdentityOption();
  };
  CHECK(pairs("1") == std::vector<InplacePair>{{0, 0}});
  CHECK(pairs("2").empty());
}

// Offered images in blocks of eight channels: those whose blocks can be joined keep the layout,
// others are plain.
TEST_CASE("Concat of blocks of channels") {
  RunCase(ConcatCase({{2, 8, 3, 5}, {2, 24, 3, 5}, {2, 16, 3, 5}}, 1));
  RunCase(ConcatCase({{2, 8, 3, 5}, {2, 4, 3, 5}, {2, 4, 3, 5}}, 1));
  RunCase(ConcatCase({{2, 8, 3, 5}, {1, 8, 3, 5}}, 0));
  RunCase(ConcatCase({{2, 8, 3, 5}, {2, 8, 1, 5}}, 2));
  const auto layout = [](const std::vector<TShape>& shapes, int dim) {
    const auto property = TestRegistry().Create(
        "Concat", {{"num_args", format("{}", shapes.size())}, {"dim", format("{}", dim)}});
    std::vector<TShape> in = shapes, out(1), aux;
    REQUIRE(property->InferShape(&in, &out, &aux));
    std::vector<TensorSpec> specs;
    for (const TShape& shape : shapes) specs.push_back({shape, DType::kFloat32, Layout()});
    const TensorSpec whole{out[0], DType::kFloat32, Layout()};
    const std::vector<std::optional<Layout>> offered(
        shapes.size(), TestBackend().Intern(BlockedLayout::FromName("aBcd8b")));
    const OpReqType write = OpReqType::kWriteTo;
    PlanRequest request;
    request.in = specs;
    request.out = {&whole, 1};
    request.in_layout = offered;
    request.out_req = {&write, 1};
    return property->CreatePlan(TestRegistry(), request, TestBackend()).out[0].Name();
  };
  CHECK(layout({{2, 8, 3, 5}, {2, 24, 3, 5}}, 1) == "aBcd8b");
  CHECK(layout({{2, 8, 3, 5}, {2, 4, 3, 5}, {2, 4, 3, 5}}, 1) == "plain");
  CHECK(layout({{2, 8, 3, 5}, {1, 8, 3, 5}}, 0) == "aBcd8b");
  CHECK(layout({{2, 4, 3, 5}, {1, 4, 3, 5}}, 0) == "plain");
  CHECK(layout({{2, 8, 3, 5}, {2, 8, 1, 5}}, 2) == "plain");
}

TEST_CASE("Concat: shapes") {
  const auto infer = [](int dim, std::vector<TShape> in, TShape out) {
    const auto property = TestRegistry().Create(
        "concat", {{"num_args", format("{}", in.size())}, {"dim", format("{}", dim)}});
    std::vector<TShape> outs = {out}, aux;
    const bool known = property->InferShape(&in, &outs, &aux);
    in.push_back(outs[0]);
    in.push_back(TShape{known});
    return in;
  };
  using Shapes = std::vector<TShape>;
  CHECK(infer(1, {{2, 3}, {2, 4}}, {}) == Shapes{{2, 3}, {2, 4}, {2, 7}, TShape{1}});
  CHECK(infer(1, {{-1, 3}, {2, -1}}, {-1, 7}) == Shapes{{2, 3}, {2, 4}, {2, 7}, TShape{1}});
  CHECK(infer(1, {{-1, 3}, {-1, 4}}, {}) == Shapes{{-1, 3}, {-1, 4}, {-1, 7}, TShape{0}});
  CHECK(infer(1, {{-1, 3}, {-1, 4}}, {5, -1}) == Shapes{{5, 3}, {5, 4}, {5, 7}, TShape{1}});
  CHECK(infer(1, {{}, {}}, {}).back() == TShape{0});
  CHECK_THROWS_WITH_AS(infer(1, {{2, 3}, {3, 4}}, {}),
                       doctest::Contains("arg1 has shape [3, ?], but [2, ?] was expected"), Error);
  CHECK_THROWS_WITH_AS(infer(2, {{2, 3}, {2, 4}}, {}),
                       "Concat: dim = 2 is out of range for inputs with 2 axes; use -2 .. 1",
                       Error);
}

}  // namespace
}  // namespace mxtrain::test
