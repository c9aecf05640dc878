// SPDX-License-Identifier: Apache-2.0
// Updates of some rows alone, against updates of the whole array of which only those rows are kept.
#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "mxtrain/operator/imperative.h"
#include "mxtrain/operator/update_params.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

constexpr int64_t kRows = 7, kWidth = 19;
const std::vector<float> kListed = {5, 2, 2, 0, 5, 900, -3};  // rows 0, 2, 5, 6
const std::set<int64_t> kTouched = {0, 2, 5, 6};

struct State {
  std::vector<float> weight, grad;
  std::vector<std::vector<float>> states;
};

std::vector<float> Some(int64_t seed) {
  std::vector<float> values;
  for (int64_t i = 0; i < kRows * kWidth; ++i)
    values.push_back(static_cast<float>(std::sin(static_cast<double>(seed * 977 + i)) * 0.5 + 0.6));
  return values;
}

NDArray ArrayOf(Runtime& runtime, const std::vector<float>& values) {
  return NDArray::FromVector(runtime, TShape{kRows, kWidth}, values);
}

// One update, of all rows or of kListed.
State Updated(Runtime& runtime, const updates::Update& update, bool rows,
              const std::vector<float>& scalars) {
  NDArray weight = ArrayOf(runtime, Some(1)), grad = ArrayOf(runtime, Some(2));
  std::vector<NDArray> states;
  for (int s = 0; s < update.num_states(); ++s) states.push_back(ArrayOf(runtime, Some(3 + s)));
  std::vector<NDArray> in = {weight, grad}, out = {weight};
  if (rows) {
    in.push_back(NDArray::FromVector(runtime, TShape{std::ssize(kListed)}, kListed));
    out.push_back(grad);
  }
  in.push_back(NDArray::FromVector(runtime, TShape{4}, scalars));
  Kwargs kwargs;
  if (rows) kwargs.emplace_back("rows", "True");
  InvokeInto(update.op, in, out, OpReqType::kWriteInplace, kwargs, states);
  State state{weight.ToVector(), grad.ToVector(), {}};
  for (const NDArray& array : states) state.states.push_back(array.ToVector());
  return state;
}

// Loops of other lengths may fuse other products with sums.
void RequireAlike(float value, float whole, float before, bool touched) {
  if (!touched) REQUIRE(value == before);
  if (touched) REQUIRE(value == doctest::Approx(static_cast<double>(whole)).epsilon(1e-6));
}

bool MeasuresAll(std::string_view op) {
  return op == "lamb_update" || op == "lars_update" || op == "group_adagrad_update";
}

TEST_CASE("an update of rows does to them what one of the whole array does, and nothing else") {
  Runtime runtime{RuntimeOptions(), BuiltinOperators()};
  for (const updates::Update& update : updates::kUpdates) {
    if (MeasuresAll(update.op)) continue;
    CAPTURE(update.op);
    const std::vector<float> scalars = {0.1F, 0.01F, 0.5F, 1};
    const State all = Updated(runtime, update, false, scalars),
                some = Updated(runtime, update, true, scalars);
    const std::vector<float> weight = Some(1), grad = Some(2);
    for (int64_t i = 0; i < kRows * kWidth; ++i) {
      const auto at = static_cast<size_t>(i);
      const bool touched = kTouched.contains(i / kWidth);
      RequireAlike(some.weight[at], all.weight[at], weight[at], touched);
      REQUIRE(some.grad[at] == (touched ? 0 : grad[at]));
      for (size_t s = 0; s < some.states.size(); ++s) {
        const float before = Some(3 + static_cast<int64_t>(s))[at];
        RequireAlike(some.states[s][at], all.states[s][at], before, touched);
      }
    }
  }
}

TEST_CASE("a step that is skipped clears the gradient of its rows and leaves all else") {
  Runtime runtime{RuntimeOptions(), BuiltinOperators()};
  const State some = Updated(runtime, updates::UpdateOf("adam_update"), true, {0.1F, 0.01F, 0, 1});
  CHECK(some.weight == Some(1));
  CHECK(some.states[0] == Some(3));
  for (int64_t i = 0; i < kRows * kWidth; ++i)
    REQUIRE((some.grad[static_cast<size_t>(i)] == 0) == kTouched.contains(i / kWidth));
}

TEST_CASE("updates that measure a whole array take no rows") {
  for (const char* op : {"lamb_update", "lars_update", "group_adagrad_update"})
    CHECK_THROWS_WITH(TestRegistry().Create(op, {{"rows", "True"}}),
                      doctest::Contains("measures more than a row at a time"));
  CHECK_THROWS_WITH(TestRegistry().Create("sgd_update", {{"rows", "True"}, {"num_weights", "2"}}),
                    doctest::Contains("only one weight is updated so"));
}

}  // namespace
}  // namespace mxtrain::test
