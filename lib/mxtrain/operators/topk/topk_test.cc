// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/support/case_parts.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

// A view [outer, length, inner] of the data, and what is asked of it.
struct Order {
  TShape view;
  int64_t k;
  bool ascend;
};

// The indices of the first k elements of every column, [outer, k, inner].
std::vector<int64_t> Ranks(const Values& x, const Order& order) {
  const int64_t length = order.view[1], inner = order.view[2];
  std::vector<int64_t> ranks(static_cast<size_t>(order.view[0] * order.k * inner));
  for (int64_t o = 0; o < order.view[0]; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      const auto at = [&](int64_t l) {
        return x[static_cast<size_t>((o * length + l) * inner + i)];
      };
      std::vector<int64_t> indices(static_cast<size_t>(length));
      std::iota(indices.begin(), indices.end(), 0);
      std::stable_sort(indices.begin(), indices.end(), [&](int64_t a, int64_t b) {
        if (std::isnan(at(a)) || std::isnan(at(b))) return !std::isnan(at(a)) && std::isnan(at(b));
        return order.ascend ? at(a) < at(b) : at(a) > at(b);
      });
      for (int64_t j = 0; j < order.k; ++j)
        ranks[static_cast<size_t>((o * order.k + j) * inner + i)] = indices[static_cast<size_t>(j)];
    }
  }
  return ranks;
}
// The place in the data of each rank.
std::vector<size_t> Places(const Values& x, const Order& order) {
  const std::vector<int64_t> ranks = Ranks(x, order);
  const int64_t length = order.view[1], inner = order.view[2];
  std::vector<size_t> places;
  for (int64_t r = 0; r < static_cast<int64_t>(ranks.size()); ++r) {
    const int64_t o = r / (order.k * inner);
    places.push_back(
        static_cast<size_t>((o * length + ranks[static_cast<size_t>(r)]) * inner + r % inner));
  }
  return places;
}

// result: "indices", "value", "mask" or "both".
OperatorCase TopkCase(const char* op, Kwargs kwargs, const TShape& data, const Order& order,
                      const std::string& result) {
  OperatorCase c;
  c.op = op;
  c.name = format("{} {} of {}, k {}", op, result, data.ToString(), order.k);
  c.kwargs = std::move(kwargs);
  if (c.op == "topk") c.kwargs.emplace_back("ret_typ", result);
  c.shapes = {data};
  c.inputs = {Distinct(-3, 3)};
  const bool values = result == "value" || result == "both";
  c.forward = [=](const Arrays& in, const Arrays&) {
    Arrays out;
    if (result == "mask") {
      out.emplace_back(in[0].size());
      for (const size_t place : Places(in[0], order)) out[0][place] = 1;
    }
    if (values) {
      out.emplace_back();
      for (const size_t place : Places(in[0], order)) out[0].push_back(in[0][place]);
    }
    if (result == "indices" || result == "both") {
      out.emplace_back();
      for (const int64_t rank : Ranks(in[0], order))
        out.back().push_back(static_cast<double>(rank));
    }
    return out;
  };
  c.gradient = [=](const Arrays& in, const Arrays&, const Arrays& head) {
    Values g(in[0].size());
    if (values) {
      const std::vector<size_t> places = Places(in[0], order);
      for (size_t r = 0; r < places.size(); ++r) g[places[r]] = head[0][r];
    }
    return Arrays{g};
  };
  c.tolerance = {0, "comparisons and copies"};
  c.must_accept = {"ref"};
  return c;
}

TEST_CASE("topk") {
  for (const char* result : {"indices", "value", "mask", "both"}) {
    RunCase(TopkCase("topk", {}, {4, 9}, {{4, 9, 1}, 1, false}, result));
    RunCase(
        TopkCase("topk", {{"k", "3"}, {"axis", "1"}}, {3, 7, 5}, {{3, 7, 5}, 3, false}, result));
    RunCase(TopkCase("topk", {{"k", "7"}, {"axis", "0"}, {"is_ascend", "True"}}, {7, 2},
                     {{1, 7, 2}, 7, true}, result));
    RunCase(
        TopkCase("topk", {{"k", "0"}, {"axis", "-2"}}, {2, 5, 3}, {{2, 5, 3}, 5, false}, result));
    RunCase(
        TopkCase("topk", {{"k", "4"}, {"axis", "None"}}, {3, 5}, {{1, 15, 1}, 4, false}, result));
    RunCase(TopkCase("topk", {}, {1, 1}, {{1, 1, 1}, 1, false}, result));
    RunCase(TopkCase("topk", {{"k", "2"}}, {0, 3}, {{0, 3, 1}, 2, false}, result));
    RunCase(TopkCase("topk", {{"k", "-1"}}, {2, 0}, {{2, 0, 1}, 0, false}, result));
  }
}

TEST_CASE("topk: element types") {
  for (const char* result : {"value", "both"}) {
    OperatorCase c = TopkCase("topk", {{"k", "5"}}, {6, 11}, {{6, 11, 1}, 5, false}, result);
    c.types = kAllTypes;
    // Many ties.
    c.inputs = {Cycle({3, 1, 2, 3, 0, 1, 7})};
    RunCase(c);
  }
  OperatorCase c = TopkCase("topk", {{"k", "6"}}, {2, 8}, {{2, 8, 1}, 6, false}, "value");
  c.types = {DType::kFloat32,  DType::kFloat64, DType::kFloat16,
             DType::kBfloat16, DType::kInt32,   DType::kInt64};
  c.inputs = {Cycle({-3, 1, -200, 3, 0, 100, -7})};
  RunCase(c);
  for (const DType type : kAllTypes) {
    RunCase(TopkCase("topk", {{"k", "2"}, {"dtype", NameOf(type)}}, {3, 40}, {{3, 40, 1}, 2, false},
                     "indices"));
  }
}

// Below and above the number that insertion selects, and all.
TEST_CASE("topk: a selection, then an order") {
  for (const int k : {1, 31, 32, 33, 99, 100}) {
    const Kwargs kwargs = {{"k", std::to_string(k)}};
    OperatorCase c = TopkCase("topk", kwargs, {3, 100}, {{3, 100, 1}, k, false}, "both");
    c.types = kAllFloatingTypes;
    RunCase(c);
    c.inputs = {Cycle({5, 4, 4, 1, 9, 9, 9, 2, 3, 1})};
    RunCase(c);
  }
}

TEST_CASE("topk, sort and argsort: NaN is last, equal elements are in order") {
  const double nan = std::nan("");
  const Generator values = Cycle({nan, 1, HUGE_VAL, -0.0, nan, 0, -HUGE_VAL, 1, 0, -1, -0.0});
  for (const bool ascend : {false, true}) {
    const Kwargs kwargs = {{"is_ascend", ascend ? "True" : "False"}};
    OperatorCase cases[] = {
        TopkCase("topk", kwargs, {2, 11}, {{2, 11, 1}, 11, ascend}, "both"),
        TopkCase("sort", kwargs, {2, 11}, {{2, 11, 1}, 11, ascend}, "value"),
        TopkCase("argsort", kwargs, {2, 11}, {{2, 11, 1}, 11, ascend}, "indices")};
    cases[0].kwargs.emplace_back("k", "0");
    for (OperatorCase& c : cases) {
      c.inputs = {values};
      c.types = kAllFloatingTypes;
      RunCase(c);
    }
  }
}

TEST_CASE("sort and argsort") {
  for (const auto& [op, result] : {std::pair{"sort", "value"}, std::pair{"argsort", "indices"}}) {
    RunCase(TopkCase(op, {}, {4, 9}, {{4, 9, 1}, 9, true}, result));
    RunCase(TopkCase(op, {{"axis", "1"}, {"is_ascend", "0"}}, {2, 6, 3}, {{2, 6, 3}, 6, false},
                     result));
    RunCase(TopkCase(op, {{"axis", "None"}}, {3, 4}, {{1, 12, 1}, 12, true}, result));
    RunCase(TopkCase(op, {}, {3, 1}, {{3, 1, 1}, 1, true}, result));
    RunCase(TopkCase(op, {}, {2, 0}, {{2, 0, 1}, 0, true}, result));
    RunCase(TopkCase(op, {{"axis", "0"}}, {300, 70}, {{1, 300, 70}, 300, true}, result));
  }
  OperatorCase c =
      TopkCase("argsort", {{"dtype", "int64"}}, {5, 6}, {{5, 6, 1}, 6, true}, "indices");
  c.types = kAllTypes;
  c.inputs = {Cycle({3, 1, 2, 3, 0, 1, 7})};
  RunCase(c);
}

TEST_CASE("one long row is ordered by all threads") {
  RunCase(TopkCase("topk", {{"k", "50"}, {"dtype", "int32"}}, {1, 70001},
                   {{1, 70001, 1}, 50, false}, "both"));
  OperatorCase c = TopkCase("sort", {}, {70001}, {{1, 70001, 1}, 70001, true}, "value");
  c.types = {DType::kFloat32, DType::kFloat64, DType::kBfloat16, DType::kInt32};
  c.inputs = {Cycle({3, 1, -2, 3, 0, 1, -7, 5, 5, 100, -100})};
  RunCase(c);
}

TEST_CASE("topk, sort and argsort: shapes, types and refusals") {
  const auto infer = [](const char* op, const Kwargs& kwargs, TShape data, TShape output) {
    const auto property = TestRegistry().Create(op, kwargs);
    std::vector<TShape> in = {data}, out(static_cast<size_t>(property->NumOutputs())), aux;
    out[0] = output;
    property->InferShape(&in, &out, &aux);
    out.push_back(in[0]);
    return out;
  };
  CHECK(infer("topk", {{"k", "2"}, {"axis", "0"}}, TShape{5, -1}, TShape{-1, 3}) ==
        std::vector{TShape{2, 3}, TShape{5, 3}});
  CHECK(infer("topk", {{"ret_typ", "both"}}, TShape{5, 4}, TShape{}) ==
        std::vector{TShape{5, 1}, TShape{5, 1}, TShape{5, 4}});
  CHECK(infer("topk", {{"ret_typ", "mask"}, {"axis", "None"}}, TShape{}, TShape{5, 4}) ==
        std::vector{TShape{5, 4}, TShape{5, 4}});
  CHECK(infer("sort", {}, TShape{}, TShape{5, 4})[1] == TShape{5, 4});
  CHECK(infer("argsort", {{"axis", "None"}}, TShape{5, 4}, TShape{})[0] == TShape{20});
  CHECK_THROWS_WITH(infer("topk", {{"k", "5"}}, TShape{2, 3}, TShape{}),
                    "topk: k = 5, but axis -1 of [2, 3] has only 3 elements");
  CHECK_THROWS_WITH(infer("topk", {{"k", "5"}, {"axis", "None"}}, TShape{1}, TShape{}),
                    "topk: k = 5, but [1] has only 1 element");
  CHECK_THROWS_WITH(infer("sort", {{"axis", "2"}}, TShape{2, 3}, TShape{}),
                    "sort: axis 2 is out of range for shape [2, 3]");
  CHECK_THROWS_WITH(infer("argsort", {{"dtype", "uint8"}}, TShape{257}, TShape{}),
                    "argsort: axis -1 of [257] has 257 elements, whose indices are not exact in "
                    "uint8; set dtype to int32 or int64");
  CHECK(infer("argsort", {{"dtype", "uint8"}}, TShape{256}, TShape{})[0] == TShape{256});

  const auto both = TestRegistry().Create("topk", {{"ret_typ", "both"}, {"dtype", "int32"}});
  CHECK(both->ListOutputs() == std::vector<std::string>{"output0", "output1"});
  std::vector<DType> in = {DType::kUnknown}, out = {DType::kFloat16, DType::kUnknown}, aux;
  CHECK(both->InferType(&in, &out, &aux));
  CHECK(in[0] == DType::kFloat16);
  CHECK(out[1] == DType::kInt32);
}

}  // namespace
}  // namespace mxtrain::test
