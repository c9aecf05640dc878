// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

// Along axis 1 of [outer, length, inner]; the first of ties.
OperatorCase ArgmaxCase(const char* op, const Kwargs& kwargs, const TShape& shape, int64_t outer,
                        int64_t length, int64_t inner) {
  OperatorCase c;
  c.op = op;
  c.name = format("{} of {}", op, shape.ToString());
  c.kwargs = kwargs;
  c.shapes = {shape};
  c.inputs = {Distinct(-3, 3)};
  const bool smallest = std::string(op) == "argmin";
  c.forward = [=](const Arrays& in, const Arrays&) {
    Values y;
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < inner; ++i) {
        Values row;
        for (int64_t k = 0; k < length; ++k)
          row.push_back(in[0][static_cast<size_t>((o * length + k) * inner + i)]);
        const auto found = smallest ? std::min_element(row.begin(), row.end())
                                    : std::max_element(row.begin(), row.end());
        y.push_back(static_cast<double>(found - row.begin()));
      }
    }
    return Arrays{y};
  };
  c.types = kAllFloatingTypes;
  c.tolerance = {0, "comparisons"};
  c.must_accept = {"simple"};
  return c;
}

TEST_CASE("argmax and argmin") {
  RunCase(ArgmaxCase("argmax", {{"axis", "1"}}, {3, 7, 5}, 3, 7, 5));
  RunCase(ArgmaxCase("argmax", {{"axis", "-1"}, {"keepdims", "True"}}, {3, 7, 5}, 21, 5, 1));
  RunCase(ArgmaxCase("argmax", {}, {3, 7}, 1, 21, 1));
  RunCase(ArgmaxCase("argmin", {{"axis", "0"}}, {6, 2}, 1, 6, 2));
  RunCase(ArgmaxCase("argmin", {{"axis", "1"}}, {2, 1}, 2, 1, 1));
  RunCase(ArgmaxCase("argmin", {{"axis", "1"}}, {0, 3}, 0, 3, 1));
  RunCase(ArgmaxCase("argmax_channel", {}, {4, 6}, 4, 6, 1));
  OperatorCase ties = ArgmaxCase("argmax", {{"axis", "1"}}, {2, 4}, 2, 4, 1);
  ties.inputs = {Cycle({1, 3, 3, 2, 5, 4, 5, 5})};
  ties.forward = [](const Arrays&, const Arrays&) { return Arrays{{1, 0}}; };
  ties.gradient = [](const Arrays&, const Arrays&, const Arrays&) {
    return Arrays{Values(8, 0.0)};
  };
  RunCase(ties);
  ties.inputs = {Cycle({1, std::nan(""), 3, 2, 5, 4, 5, 6})};
  ties.forward = [](const Arrays&, const Arrays&) { return Arrays{{1, 3}}; };
  RunCase(ties);
}

// Long columns are divided into slices, contiguous rows into lanes, adjacent columns into blocks.
TEST_CASE("argmax and argmin of large arrays") {
  const auto run = [](OperatorCase c) {
    c.gradient = [size = c.shapes[0].Size()](const Arrays&, const Arrays&, const Arrays&) {
      return Arrays{Values(static_cast<size_t>(size), 0.0)};
    };
    c.tolerance = {0, "comparisons; indices are rounded to the type"};
    RunCase(c);
    c.inputs = {Cycle({1, 3, 2, 3, -5, 0, -5})};  // ties within and across all of these
    RunCase(c);
    c.inputs = {Constant(-HUGE_VAL)};
    RunCase(c);
  };
  for (const char* op : {"argmax", "argmin"}) {
    run(ArgmaxCase(op, {{"axis", "1"}}, {3, 5, 70}, 3, 5, 70));
    run(ArgmaxCase(op, {{"axis", "1"}}, {90, 201}, 90, 201, 1));
    run(ArgmaxCase(op, {}, {64, 2}, 1, 128, 1));
    for (const bool rows : {true, false}) {
      OperatorCase c = rows ? ArgmaxCase(op, {{"axis", "1"}}, {2, 9001}, 2, 9001, 1)
                            : ArgmaxCase(op, {{"axis", "0"}}, {4100, 33}, 1, 4100, 33);
      c.types = {DType::kFloat32};
      run(c);
    }
  }
}

TEST_CASE("argmax: the first NaN wins") {
  for (const int64_t at : {0, 70, 4096, 9000}) {
    for (const bool rows : {true, false}) {
      OperatorCase c = rows ? ArgmaxCase("argmax", {{"axis", "1"}}, {1, 9001}, 1, 9001, 1)
                            : ArgmaxCase("argmax", {{"axis", "0"}}, {9001, 1, 2}, 1, 9001, 2);
      const int64_t inner = rows ? 1 : 2;
      c.inputs = {[=](int64_t size, uint64_t) {
        Values x(static_cast<size_t>(size), 1.0);
        x[5] = HUGE_VAL;
        for (int64_t i = at * inner; i < size; i += 17 * inner)
          x[static_cast<size_t>(i)] = std::nan("");
        return x;
      }};
      const auto first = [=](int64_t column) {  // x[5] is in column 0 or, of two, in column 1
        return static_cast<double>(column == 0 ? at : 5 / inner);
      };
      c.forward = [=](const Arrays&, const Arrays&) {
        return rows ? Arrays{{first(0)}} : Arrays{{first(0), first(1)}};
      };
      c.types = {DType::kFloat32, DType::kFloat16};
      c.backward = false;
      RunCase(c);
    }
  }
}

TEST_CASE("argmax: shapes") {
  const auto shape = [](const char* op, const Kwargs& kwargs) {
    std::vector<TShape> in = {TShape{2, 3, 4}}, out(1), aux;
    TestRegistry().Create(op, kwargs)->InferShape(&in, &out, &aux);
    return out[0];
  };
  CHECK(shape("argmax", {}) == TShape{1});
  CHECK(shape("argmax", {{"keepdims", "1"}}) == TShape{1, 1, 1});
  CHECK(shape("argmin", {{"axis", "1"}}) == TShape{2, 4});
  CHECK(shape("argmin", {{"axis", "-1"}, {"keepdims", "1"}}) == TShape{2, 3, 1});
  CHECK(shape("argmax_channel", {}) == TShape{2, 4});
  CHECK_THROWS_WITH(shape("argmax", {{"axis", "3"}}),
                    "argmax: axis 3 is out of range for shape [2, 3, 4]");
}

TEST_CASE("argmax of nothing is rejected with its shape") {
  const auto message = [](const char* op, const Kwargs& kwargs,
                          const TShape& shape) -> std::string {
    std::vector<TShape> in{shape}, out(1), aux;
    try {
      TestRegistry().Create(op, kwargs)->InferShape(&in, &out, &aux);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  CHECK(message("argmax", {{"axis", "1"}}, {2, 0, 3}) ==
        "argmax: axis 1 of [2, 0, 3] has no elements; expected at least one");
  CHECK(message("argmin", {}, {0}) == "argmin: [0] has no elements; expected at least one");
  CHECK(message("argmax_channel", {}, {4, 0}) ==
        "argmax_channel: axis 1 of [4, 0] has no elements; expected at least one");
  CHECK(message("argmax", {{"axis", "0"}}, {2, 0, 3}) == "");
}

}  // namespace
}  // namespace mxtrain::test
