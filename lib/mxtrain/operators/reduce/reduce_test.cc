// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

using Fold = double (*)(const Values& group);

double Sum(const Values& v) {
  double s = 0;
  for (const double x : v) s += x;
  return s;
}
double Prod(const Values& v) {
  double p = 1;
  for (const double x : v) p *= x;
  return p;
}

// The elements of a [2, 3, 4, 5] array by the indices of the kept axes.
Arrays Reduce(const Values& x, const std::vector<bool>& kept, Fold fold) {
  std::map<std::vector<int>, Values> groups;
  size_t at = 0;
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < 4; ++k) {
        for (int l = 0; l < 5; ++l)
          groups[{kept[0] ? i : 0, kept[1] ? j : 0, kept[2] ? k : 0, kept[3] ? l : 0}].push_back(
              x[at++]);
      }
    }
  }
  Values result;
  for (const auto& [index, group] : groups) result.push_back(fold(group));
  return {result};
}

OperatorCase ReduceCase(const std::string& op, Fold fold, const std::vector<bool>& kept,
                        Kwargs kwargs) {
  OperatorCase c;
  c.op = op;
  c.name = format("{} {}", op, kwargs.empty() ? "" : kwargs[0].second);
  c.kwargs = std::move(kwargs);
  c.shapes = {TShape{2, 3, 4, 5}};
  c.inputs = {Distinct(0.5, 1.5)};
  c.forward = [=](const Arrays& in, const Arrays&) { return Reduce(in[0], kept, fold); };
  c.tolerance = {64, "up to 120 sums or products in double, one rounding"};
  c.must_accept = {"simple"};
  return c;
}

TEST_CASE("reductions over axes") {
  const std::pair<const char*, Fold> folds[] = {
      {"sum", Sum},
      {"nansum", Sum},
      {"mean", [](const Values& v) { return Sum(v) / static_cast<double>(v.size()); }},
      {"prod", Prod},
      {"nanprod", Prod},
      {"max", [](const Values& v) { return *std::max_element(v.begin(), v.end()); }},
      {"min", [](const Values& v) { return *std::min_element(v.begin(), v.end()); }},
  };
  for (const auto& [op, fold] : folds) {
    RunCase(ReduceCase(op, fold, {false, false, false, false}, {}));
    RunCase(ReduceCase(op, fold, {true, false, true, true}, {{"axis", "1"}}));
    RunCase(ReduceCase(op, fold, {true, true, false, false},
                       {{"axis", "(-1, 2)"}, {"keepdims", "True"}}));
    RunCase(
        ReduceCase(op, fold, {false, true, false, false}, {{"axis", "1"}, {"exclude", "True"}}));
  }
}

TEST_CASE("shapes of results") {
  const auto shape = [](const Kwargs& kwargs) {
    std::vector<TShape> in = {TShape{2, 3, 4}}, out(1), aux;
    TestRegistry().Create("sum_axis", kwargs)->InferShape(&in, &out, &aux);
    return out[0];
  };
  CHECK(shape({}) == TShape{1});
  CHECK(shape({{"keepdims", "1"}}) == TShape{1, 1, 1});
  CHECK(shape({{"axis", "(0, 2)"}}) == TShape{3});
  CHECK(shape({{"axis", "0"}, {"keepdims", "1"}}) == TShape{1, 3, 4});
  CHECK_THROWS_WITH(shape({{"axis", "3"}}), "sum: axis 3 is out of range for shape [2, 3, 4]");
  CHECK_THROWS_WITH(shape({{"axis", "(1, -2)"}}), "sum: axis -2 is repeated");
}

TEST_CASE("every element equal to the extreme gets the gradient") {
  OperatorCase c = ReduceCase("max", Sum, {}, {{"axis", "1"}});
  c.shapes = {TShape{2, 3}};
  c.inputs = {Cycle({1, 3, 3, 2, 2, 2})};
  c.forward = [](const Arrays&, const Arrays&) { return Arrays{{3, 2}}; };
  c.gradient = [](const Arrays&, const Arrays&, const Arrays& h) {
    return Arrays{{0, h[0][0], h[0][0], h[0][1], h[0][1], h[0][1]}};
  };
  c.types = kAllFloatingTypes;
  RunCase(c);
}

TEST_CASE("max and min of elements with a NaN are NaN") {
  const double nan = std::nan("");
  for (const char* op : {"max", "min"}) {
    OperatorCase c = ReduceCase(op, Sum, {}, {{"axis", "1"}});
    c.shapes = {TShape{2, 400}};
    Values x(800, 1.5);
    x[7] = nan;
    c.inputs = {Cycle(x)};
    c.forward = [nan](const Arrays&, const Arrays&) { return Arrays{{nan, 1.5}}; };
    c.backward = false;
    c.types = kAllFloatingTypes;
    RunCase(c);
  }
}

TEST_CASE("nansum and nanprod skip NaN") {
  const double nan = std::nan("");
  for (const bool sum : {true, false}) {
    OperatorCase c = ReduceCase(sum ? "nansum" : "nanprod", Sum, {}, {});
    c.shapes = {TShape{3}};
    c.inputs = {Cycle({2, nan, 4})};
    c.forward = [sum](const Arrays&, const Arrays&) { return Arrays{{sum ? 6.0 : 8.0}}; };
    c.gradient = [sum](const Arrays&, const Arrays&, const Arrays& h) {
      return Arrays{{h[0][0] * (sum ? 1 : 4), 0, h[0][0] * (sum ? 1 : 2)}};
    };
    RunCase(c);
  }
}

}  // namespace
}  // namespace mxtrain::test
