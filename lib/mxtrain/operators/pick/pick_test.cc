// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/case_parts.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

// Along axis 1 of [outer, length, inner].
OperatorCase PickCase(const char* op, const Kwargs& kwargs, const TShape& data, const TShape& index,
                      const TShape& view, const Generator& values) {
  OperatorCase c;
  c.op = op;
  c.name = format("{} of {} by {}", op, data.ToString(), index.ToString());
  c.kwargs = kwargs;
  c.shapes = {data, index};
  c.inputs = {Uniform(0, 9), values};
  c.input_types = {DType::kUnknown, DType::kFloat32};
  const bool wrap = std::any_of(kwargs.begin(), kwargs.end(),
                                [](const auto& item) { return item.second == "wrap"; });
  c.forward = [=](const Arrays& in, const Arrays&) {
    Values y;
    for (int64_t o = 0; o < view[0]; ++o) {
      for (int64_t i = 0; i < view[2]; ++i) {
        auto k = static_cast<int64_t>(in[1][static_cast<size_t>(o * view[2] + i)]);
        if (wrap) {
          while (k < 0) k += view[1];
          k %= view[1];
        } else {
          k = std::clamp<int64_t>(k, 0, view[1] - 1);
        }
        y.push_back(in[0][static_cast<size_t>((o * view[1] + k) * view[2] + i)]);
      }
    }
    return Arrays{y};
  };
  c.tolerance = {0, "copies"};
  c.must_accept = {"ref"};
  return c;
}

TEST_CASE("pick") {
  OperatorCase c = PickCase("pick", {}, {6, 5}, {6}, {6, 5, 1}, Labels(5));
  c.types = kAllTypes;
  RunCase(c);
  c.types = {DType::kFloat32};
  for (const DType type : kAllTypes) {
    c.input_types[1] = type;
    RunCase(c);
  }
  RunCase(PickCase("pick", {{"axis", "1"}}, {3, 5, 7}, {3, 7}, {3, 5, 7}, Labels(5)));
  RunCase(PickCase("pick", {{"axis", "1"}, {"keepdims", "True"}}, {3, 5, 7}, {3, 7}, {3, 5, 7},
                   Labels(5)));
  RunCase(PickCase("pick", {{"axis", "0"}}, {3, 5}, {1, 5}, {1, 3, 5}, Labels(3)));
  RunCase(PickCase("pick", {}, {9}, {1}, {1, 9, 1}, Constant(4)));
  RunCase(PickCase("pick", {}, {1, 1}, {1}, {1, 1, 1}, Labels(1)));
  RunCase(PickCase("pick", {}, {0, 4}, {0}, {0, 4, 1}, Labels(4)));
  RunCase(PickCase("choose_element_0index", {}, {4, 3}, {4}, {4, 3, 1}, Labels(3)));
  const Generator wild = Cycle({-1, 3, 2.9, -0.5, -7, 12});
  RunCase(PickCase("pick", {}, {6, 3}, {6}, {6, 3, 1}, wild));
  RunCase(PickCase("pick", {{"mode", "wrap"}}, {6, 3}, {6}, {6, 3, 1}, wild));
  RunCase(PickCase("pick", {{"axis", "1"}}, {300, 3, 130}, {300, 130}, {300, 3, 130}, Labels(3)));
}

TEST_CASE("batch_take") {
  OperatorCase c = PickCase("batch_take", {}, {6, 5}, {6}, {6, 5, 1}, Cycle({0, 4, 2, -1, 9, 3}));
  c.types = kAllFloatingTypes;
  RunCase(c);
}

TEST_CASE("pick and batch_take: shapes") {
  const auto infer = [](const char* op, const Kwargs& kwargs, std::vector<TShape> in,
                        TShape output) {
    std::vector<TShape> out = {output}, aux;
    TestRegistry().Create(op, kwargs)->InferShape(&in, &out, &aux);
    return std::vector<TShape>{in[0], in[1], out[0]};
  };
  CHECK(infer("pick", {{"axis", "1"}}, {TShape{2, 5, -1}, TShape{}}, TShape{2, 4}) ==
        std::vector{TShape{2, 5, 4}, TShape{2, 4}, TShape{2, 4}});
  CHECK(infer("pick", {{"axis", "1"}, {"keepdims", "1"}}, {TShape{-1, 5}, TShape{3}}, TShape{}) ==
        std::vector{TShape{3, 5}, TShape{3}, TShape{3, 1}});
  CHECK(infer("pick", {}, {TShape{4}, TShape{}}, TShape{})[2] == TShape{1});
  CHECK(infer("batch_take", {}, {TShape{-1, 5}, TShape{}}, TShape{3}) ==
        std::vector{TShape{3, 5}, TShape{3}, TShape{3}});
  CHECK_THROWS_WITH(infer("pick", {}, {TShape{2, 5}, TShape{3}}, TShape{}),
                    "pick: index has shape [3], but [2] was expected");
  CHECK_THROWS_WITH(infer("pick", {{"axis", "2"}}, {TShape{2, 5}, TShape{}}, TShape{}),
                    "pick: axis 2 is out of range for shape [2, 5]");
  CHECK_THROWS_WITH(infer("pick", {}, {TShape{2, 0}, TShape{2}}, TShape{}),
                    "pick: axis 1 of [2, 0] has no elements; expected at least one");
  CHECK_THROWS_WITH(infer("batch_take", {}, {TShape{2, 3, 4}, TShape{}}, TShape{}),
                    doctest::Contains("batch_take: a [N, K] has shape [2, 3, 4]"));
}

}  // namespace
}  // namespace mxtrain::test
