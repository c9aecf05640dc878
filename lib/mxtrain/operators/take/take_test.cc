// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/case_parts.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

// The place of a truncated index on an axis.
int64_t TakePlace(double index, int64_t length, bool wrap) {
  const double whole = std::trunc(index), n = static_cast<double>(length);
  if (wrap) return static_cast<int64_t>(whole - std::floor(whole / n) * n);
  return static_cast<int64_t>(std::clamp(whole, 0.0, n - 1));
}

OperatorCase TakeCase(const TShape& a, const TShape& indices, const Generator& values,
                      const Kwargs& kwargs, int axis) {
  OperatorCase c;
  c.name = format("take {} of {}, axis {}", indices.ToString(), a.ToString(), axis);
  c.op = "take";
  c.kwargs = kwargs;
  c.shapes = {a, indices};
  c.inputs = {Uniform(0, 9), values};
  c.input_types = {DType::kUnknown, DType::kFloat32};
  const bool wrap = std::any_of(kwargs.begin(), kwargs.end(),
                                [](const auto& item) { return item.second == "wrap"; });
  // f(place in a, place in the output) for every element of the output.
  const auto for_each = [=](const Values& index, const auto& f) {
    const int64_t outer = a.Product(0, axis), length = a[axis],
                  inner = a.Product(axis + 1, a.ndim()), count = indices.Size();
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t n = 0; n < count; ++n) {
        const int64_t at = TakePlace(index[static_cast<size_t>(n)], length, wrap);
        for (int64_t i = 0; i < inner; ++i) {
          f(static_cast<size_t>((o * length + at) * inner + i),
            static_cast<size_t>((o * count + n) * inner + i));
        }
      }
    }
  };
  c.forward = [=](const Arrays& in, const Arrays&) {
    Values y;
    for_each(in[1], [&](size_t from, size_t) { y.push_back(in[0][from]); });
    return Arrays{y};
  };
  c.gradient = [=](const Arrays& in, const Arrays&, const Arrays& head) {
    Values g(in[0].size());
    for_each(in[1], [&](size_t from, size_t to) { g[from] += head[0][to]; });
    return Arrays{g, {}};
  };
  c.tolerance = {256, "sums of up to some hundred numbers"};
  c.must_accept = {"ref"};
  return c;
}

TEST_CASE("take") {
  OperatorCase c = TakeCase({5, 3}, {4}, Cycle({4, 0, 2, 0}), {}, 0);
  c.types = kAllTypes;
  RunCase(c);
  c.types = {DType::kFloat32};
  for (const DType type : kAllTypes) {
    c.input_types[1] = type;
    RunCase(c);
  }
  RunCase(TakeCase({3, 5, 7}, {2, 3}, Labels(5), {{"axis", "1"}}, 1));
  RunCase(TakeCase({3, 5, 7}, {4}, Labels(7), {{"axis", "-1"}}, 2));
  RunCase(TakeCase({7}, {2, 2}, Labels(7), {}, 0));
  RunCase(TakeCase({1, 1}, {1}, Labels(1), {{"axis", "1"}}, 1));
  RunCase(TakeCase({4, 3}, TShape::OfRank(0), Labels(4), {}, 0));
  // Out of range.
  const Generator wild = Cycle({-1, 5, 4.9, -0.5, -6.5, 12});
  RunCase(TakeCase({5, 2}, {6}, wild, {}, 0));
  RunCase(TakeCase({5, 2}, {6}, wild, {{"mode", "wrap"}}, 0));
  // Empty.
  RunCase(TakeCase({5, 3}, {0}, Labels(5), {}, 0));
  RunCase(TakeCase({0, 3}, {0, 2}, Labels(5), {}, 0));
  RunCase(TakeCase({0, 3}, {2}, Labels(3), {{"axis", "1"}}, 1));
  RunCase(TakeCase({5, 0}, {2}, Labels(5), {}, 0));
}

TEST_CASE("take: several threads") {
  RunCase(TakeCase({300, 130}, {700}, Labels(300), {}, 0));
  RunCase(TakeCase({3, 700}, {9000}, Labels(700), {{"axis", "1"}}, 1));
  RunCase(TakeCase({2, 300}, {8}, Labels(300), {{"axis", "1"}}, 1));
  // Most rows have one destination.
  RunCase(TakeCase({20, 70}, {300}, Cycle({3, 3, 3, 3, 7, 3, 3}), {}, 0));
}

TEST_CASE("take: mode raise") {
  OperatorCase c = TakeCase({5, 2}, {4}, Cycle({4, 0, 3.5, 1}), {{"mode", "raise"}}, 0);
  for (const std::string& problem : ExamineCase(c, TestRegistry(), TestBackend()).problems)
    FAIL_CHECK(problem);
  c.check = [](const CaseResult&) { return std::vector<std::string>(); };
  const auto examine = [&](const Generator& indices) {
    c.inputs[1] = indices;
    ExamineCase(c, TestRegistry(), TestBackend());
  };
  CHECK_THROWS_WITH_AS(examine(Cycle({4, 0, 7, 1})), "take: index 7 at place 2 is not in [0, 5)",
                       Error);
  CHECK_THROWS_WITH_AS(examine(Cycle({4, -1, 7, 1})), "take: index -1 at place 1 is not in [0, 5)",
                       Error);
  CHECK_THROWS_WITH_AS(examine(Cycle({4, 0, 3, std::nan("")})),
                       "take: index nan at place 3 is not in [0, 5)", Error);
  // A GPU cannot.
  const auto property = TestRegistry().Create("take", {{"mode", "raise"}});
  const std::vector<TensorSpec> in = {{TShape{5}, DType::kFloat32, Layout()},
                                      {TShape{3}, DType::kInt32, Layout()}},
                                out = {{TShape{3}, DType::kFloat32, Layout()}};
  PlanRequest request;
  request.in = in;
  request.out = out;
  for (const KernelEntry* kernel : TestRegistry().Kernels("take", DeviceType::kGPU)) {
    const auto plan = kernel->plan(*property, request, TestBackend());
    REQUIRE(!plan);
    CHECK(plan.error().reason == "a GPU cannot raise an error for an index; use mode clip or wrap");
  }
}

TEST_CASE("take: shapes") {
  const auto infer = [](const Kwargs& kwargs, std::vector<TShape> in, TShape output) {
    std::vector<TShape> out = {output}, aux;
    TestRegistry().Create("take", kwargs)->InferShape(&in, &out, &aux);
    return std::vector<TShape>{in[0], in[1], out[0]};
  };
  CHECK(infer({{"axis", "1"}}, {TShape{2, 5, -1}, TShape{}}, TShape{-1, 3, 4, 6}) ==
        std::vector{TShape{2, 5, 6}, TShape{3, 4}, TShape{2, 3, 4, 6}});
  CHECK(infer({}, {TShape{5}, TShape{3}}, TShape{})[2] == TShape{3});
  CHECK_THROWS_WITH(infer({{"axis", "2"}}, {TShape{2, 5}, TShape{1}}, TShape{}),
                    "take: axis 2 is out of range for shape [2, 5]");
  CHECK_THROWS_WITH(infer({}, {TShape{2, 5}, TShape{3}}, TShape{3, 4}),
                    "take: output has shape [3, 4], but [3, 5] was expected");
  CHECK_THROWS_WITH(infer({}, {TShape{0, 5}, TShape{3}}, TShape{}),
                    "take: axis 0 of [0, 5] has no elements, but indices has shape [3]");
  CHECK_THROWS_WITH(infer({}, {TShape{1, 1, 1, 1, 1}, TShape{1, 1, 1, 1, 1}}, TShape{}),
                    doctest::Contains("give an output of 9 axes; at most 8 are supported"));
}

}  // namespace
}  // namespace mxtrain::test
