// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/view_moves.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include "mxtrain/operator/view_operator.h"
#include "tests/support/team_device.h"

namespace mxtrain {
namespace {

template <typename T>
TBlob Blob(std::vector<T>& values) {
  return {values.data(), TShape{static_cast<int64_t>(values.size())}, DTypeOf<T>::value, Layout(),
          Context::cpu()};
}

// Small whole numbers, whose sums are exact.
template <typename T>
std::vector<T> Numbers(int64_t size) {
  std::vector<T> values(static_cast<size_t>(size));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(static_cast<float>(i % 7));
  return values;
}

// Two views with equal lengths: permuted, with gaps, reversed; axes of the source also repeated.
struct Views {
  StridedView from, to;
  int64_t from_size = 1, to_size = 1;  // of the arrays
};

class Drawer {
 public:
  Views Draw(const std::vector<int64_t>& lengths) {
    Views views;
    views.from_size = Place(lengths, true, &views.from);
    views.to_size = Place(lengths, false, &views.to);
    return views;
  }

 private:
  bool OneIn(uint64_t n) { return random_() % n == 0; }
  int64_t Place(const std::vector<int64_t>& lengths, bool repeats, StridedView* view) {
    std::vector<int> order(lengths.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_);
    for (const int64_t length : lengths) view->Add(length, 0);
    int64_t size = 1;
    for (const int axis : order) {
      if (repeats && OneIn(4)) continue;
      const int64_t gap = OneIn(3) ? 2 : 1, length = view->dim[axis];
      view->stride[axis] = size * gap;
      if (OneIn(4)) view->Take(axis, length - 1, length, -1);
      size *= gap * length;
    }
    return size;
  }

  std::mt19937_64 random_{7};
};

template <typename T>
T Sum(T a, T b) {
  return ElementOf<T>(Plus(static_cast<AccumulatorOf<T>>(a), static_cast<AccumulatorOf<T>>(b)));
}

// `target` after the move, on the CPU and on teams, is `expected`.
template <typename T>
void Compare(const MergedMove& move, std::vector<T> source, const std::vector<T>& target, bool add,
             const std::vector<T>& expected) {
  std::vector<T> found = target, by_teams = target;
  RunMove(OnCpu{}, move, Blob(source), Blob(found), add);
  RunMove(test::OnTeams(RunContext{}), move, Blob(source), Blob(by_teams), add);
  CHECK(std::equal(found.begin(), found.end(), expected.begin()));
  CHECK(std::equal(by_teams.begin(), by_teams.end(), expected.begin()));
}

// The move from `views.from` to `views.to`.
template <typename T>
void ExamineCopies(const Views& views) {
  const std::vector<T> source = Numbers<T>(views.from_size), target = Numbers<T>(views.to_size);
  const MergedMove move = Merge(views.from, views.to);
  CHECK(move.kept_size == views.from.Size());
  CHECK(move.summed_size == 1);
  for (const bool add : {false, true}) {
    std::vector<T> expected = target;
    for (int64_t i = 0; i < views.from.Size(); ++i) {
      T& to = expected[static_cast<size_t>(views.to.Place(i))];
      const T from = source[static_cast<size_t>(views.from.Place(i))];
      to = add ? Sum(to, from) : from;
    }
    Compare(move, source, target, add, expected);
  }
}

// The transposed move: elements that occur several times in `views.from` become sums.
template <typename T>
void ExamineSums(const Views& views) {
  const std::vector<T> source = Numbers<T>(views.to_size), target = Numbers<T>(views.from_size);
  const MergedMove move = Merge(views.to, views.from);
  CHECK(move.kept_size * move.summed_size == views.from.Size());
  for (const bool add : {false, true}) {
    std::vector<T> expected = target;
    for (int64_t i = 0; i < views.from.Size() && !add; ++i)
      expected[static_cast<size_t>(views.from.Place(i))] = T(0);
    for (int64_t i = 0; i < views.from.Size(); ++i) {
      T& to = expected[static_cast<size_t>(views.from.Place(i))];
      to = Sum(to, source[static_cast<size_t>(views.to.Place(i))]);
    }
    Compare(move, source, target, add, expected);
  }
}

TEST_CASE("moves between drawn views") {
  const std::vector<std::vector<int64_t>> shapes = {
      {},           {1},          {5},          {3, 4},
      {17, 18},     {2, 16, 3},   {33, 2},      {2, 65, 19},
      {4, 1, 5, 2}, {2, 3, 2, 3}, {16, 2, 16},  {2, 2, 2, 2, 2, 3},
      {70, 4, 2},   {4, 40},      {130, 66, 2}, {3, 2, 1, 2, 3, 2, 2, 1, 2}};
  Drawer drawer;
  for (const std::vector<int64_t>& shape : shapes) {
    for (int round = 0; round < 8; ++round) {
      const Views views = drawer.Draw(shape);
      ExamineCopies<float>(views);
      ExamineCopies<double>(views);
      ExamineCopies<bfloat16>(views);
      ExamineCopies<uint8_t>(views);
      ExamineSums<float>(views);
      ExamineSums<uint8_t>(views);
      ExamineSums<int64_t>(views);
    }
  }
}

// Heads of an attention: rows stay whole, so a copy takes words of several elements.
TEST_CASE("copies in words of several elements") {
  struct Case {
    int64_t length, from_gap, to_offset;  // of rows of bfloat16
    int64_t word;                         // bytes
  };
  for (const Case& c : {Case{16, 0, 0, 16}, Case{24, 0, 8, 16}, Case{16, 4, 0, 8},
                        Case{12, 0, 0, 8}, Case{16, 0, 2, 4}, Case{7, 0, 0, 2}}) {
    CAPTURE(c.length);
    CAPTURE(c.from_gap);
    CAPTURE(c.to_offset);
    constexpr int64_t kItems = 2, kPlaces = 5, kHeads = 3;
    const int64_t row = c.length + c.from_gap;
    Views views;
    views.from.Add(kItems, kPlaces * kHeads * row);
    views.from.Add(kHeads, row);
    views.from.Add(kPlaces, kHeads * row);
    views.from.Add(c.length, 1);
    views.to = views.from.Dense();
    views.to.offset = c.to_offset;
    views.from_size = kItems * kHeads * kPlaces * row;
    views.to_size = views.to.Size() + c.to_offset;
    ExamineCopies<bfloat16>(views);

    const std::vector<bfloat16> from(static_cast<size_t>(views.from_size) + 1);
    const MergedMove move = Merge(views.from, views.to);
    CHECK(WordOf(move, sizeof(bfloat16), from.data(), from.data()) == c.word);
    CHECK(WordOf(move, sizeof(bfloat16), from.data(), from.data() + 1) == sizeof(bfloat16));
    CHECK(InWords(move, c.word / 2).kept_size * c.word / 2 == move.kept_size);
  }
  const MergedMove transposed = Merge(StridedView::Whole({16, 16}).Take(0, 0, 16),
                                      StridedView::Whole({16, 16}).Take(1, 0, 16, 1));
  CHECK(WordOf(transposed, 8, nullptr, nullptr) == 16);  // one row
}

// More than one thread.
TEST_CASE("large moves between drawn views") {
  Drawer drawer;
  for (int round = 0; round < 6; ++round) {
    const Views views = drawer.Draw({4, 61, 150, 2});
    ExamineCopies<float>(views);
    ExamineCopies<uint8_t>(views);
    ExamineSums<float>(views);
  }
}

// With more than 64 terms GCC 12 miscompiled interleaved sums of bytes.
TEST_CASE("sums of many bytes") {
  for (const int64_t terms : {3, 8, 66, 260}) {
    StridedView from, to;
    from.Add(5, terms);
    from.Add(terms, 1);
    to.Add(5, 1);
    to.Add(terms, 0);
    std::vector<uint8_t> source = Numbers<uint8_t>(5 * terms), found(5), expected(5);
    for (size_t i = 0; i < source.size(); ++i)
      expected[i / static_cast<size_t>(terms)] =
          static_cast<uint8_t>(expected[i / static_cast<size_t>(terms)] + source[i]);
    RunMove(OnCpu{}, Merge(from, to), Blob(source), Blob(found), false);
    CHECK(found == expected);
  }
}

TEST_CASE("sums of 16-bit elements in float32") {
  StridedView from, to;  // 2 x 40 elements to two sums
  from.Add(2, 40);
  from.Add(40, 1);
  to.Add(2, 1);
  to.Add(40, 0);
  std::vector<bfloat16> source = Numbers<bfloat16>(80);
  std::vector<float> expected = {0, 0};
  for (size_t i = 0; i < 80; ++i) expected[i / 40] += static_cast<float>(source[i]);
  std::vector<float> found(2), by_teams(2);
  const MergedMove move = Merge(from, to);
  RunMove(OnCpu{}, move, Blob(source), Blob(found), false);
  RunMove(test::OnTeams(RunContext{}), move, Blob(source), Blob(by_teams), false);
  CHECK(found == expected);
  CHECK(by_teams == expected);
}

template <typename T>
void ExamineFill(double value, T expected) {
  StridedView view;
  view.offset = 1;
  view.Add(2, 4);
  view.Add(2, 2);
  const MergedMove move = Merge(view, view);
  std::vector<T> filled(8, T(1)), by_teams(8, T(1)), want(8, T(1));
  for (const size_t at : {1, 3, 5, 7}) want[at] = expected;
  RunFill(OnCpu{}, move, value, Blob(filled), false);
  RunFill(test::OnTeams(RunContext{}), move, value, Blob(by_teams), false);
  CHECK(std::equal(want.begin(), want.end(), filled.begin()));
  CHECK(std::equal(want.begin(), want.end(), by_teams.begin()));
  for (const size_t at : {1, 3, 5, 7}) want[at] = Sum(expected, expected);
  RunFill(OnCpu{}, move, value, Blob(filled), true);
  RunFill(test::OnTeams(RunContext{}), move, value, Blob(by_teams), true);
  CHECK(std::equal(want.begin(), want.end(), filled.begin()));
  CHECK(std::equal(want.begin(), want.end(), by_teams.begin()));
}

TEST_CASE("constants of every kind of type") {
  ExamineFill<float>(1.5, 1.5f);
  ExamineFill<double>(-0.1, -0.1);
  ExamineFill<float16>(2.5, float16(2.5f));
  ExamineFill<int32_t>(-3.7, -3);
  ExamineFill<uint8_t>(300, 44);
  CHECK(ConstantOf<int64_t>(1e30) == std::numeric_limits<int64_t>::max());
}

TEST_CASE("views of neighbouring elements are merged") {
  const MergedMove whole =
      Merge(StridedView::Whole({3, 1, 4, 5}), StridedView::Whole({3, 1, 4, 5}));
  CHECK(whole.kept == 1);
  CHECK(whole.axes[0].dim == 60);
  StridedView reversed = StridedView::Whole({3, 4, 5});
  for (const int axis : {0, 1, 2})
    reversed.Take(axis, reversed.dim[axis] - 1, reversed.dim[axis], -1);
  CHECK(Merge(reversed, StridedView::Whole({3, 4, 5})).kept == 1);
  CHECK(Merge(reversed, reversed).axes[0].from == 1);
}

TEST_CASE("the elements outside of a box are visited once") {
  const TShape shape = {4, 5, 3}, begin = {1, 0, 1}, length = {2, 4, 1};
  std::vector<int> met(60);
  for (const StridedView& part : Outside(shape, begin, length)) {
    for (int64_t i = 0; i < part.Size(); ++i) ++met[static_cast<size_t>(part.Place(i))];
  }
  for (int i = 0; i < 60; ++i) {
    const int x = i / 15, y = i / 3 % 5, z = i % 3;
    CHECK(met[static_cast<size_t>(i)] == (x >= 1 && x < 3 && y < 4 && z == 1 ? 0 : 1));
  }
}

TensorSpec Spec(const TShape& shape, DType type = DType::kBfloat16) {
  return {shape, type, Layout()};
}

// A gradient is filled with zeros only if neither moves nor what they leave cover it.
TEST_CASE("plans of gradients") {
  const TensorSpec in = Spec({6}), half = Spec({3}), twice = Spec({12});
  const std::vector<AxisRange> front = {{0, 3, 1}}, even = {{0, 3, 2}};
  ViewPlan plan = PlanViews(MovesOfRanges({6}, front), {&in, 1}, {&half, 1});
  CHECK(!plan.gradients[0].zero);
  CHECK(plan.gradients[0].steps.size() == 2);
  plan = PlanViews(MovesOfRanges({6}, even), {&in, 1}, {&half, 1});
  CHECK(plan.gradients[0].zero);
  CHECK(plan.gradients[0].steps.size() == 1);

  MoveList list;
  const StridedView whole = StridedView::Whole({6});
  list.Add(0, whole, 0, StridedView::Whole({12}).Take(0, 0, 6));
  list.Add(0, whole, 0, StridedView::Whole({12}).Take(0, 6, 6));
  list.overlap = true;
  plan = PlanViews(list, {&in, 1}, {&twice, 1});
  CHECK(!plan.gradients[0].zero);
  CHECK(plan.gradients[0].staged);
  CHECK(!plan.gradients[0].steps[0].add);
  CHECK(plan.gradients[0].steps[1].add);
  CHECK(plan.stage_bytes == 24);
  const TensorSpec wide = Spec({6}, DType::kFloat32);
  CHECK(PlanViews(list, {&wide, 1}, {&twice, 1}).stage_bytes == 0);

  list.moves.pop_back();
  CHECK_THROWS(PlanViews(list, {&in, 1}, {&twice, 1}));  // half of the output is never written
}

TEST_CASE("a copy from a view") {
  StridedView view;
  view.offset = 59;
  view.Add(3, -20);
  view.Add(4, 1);
  view.Add(2, 0);
  view.Add(5, -4);
  std::vector<float> array(80), dense(120, 1.0f);
  std::iota(array.begin(), array.end(), 0.0f);
  RunMove(OnCpu{}, Merge(view, view.Dense()), Blob(array), Blob(dense), /*add=*/true);
  for (int64_t i = 0; i < 120; ++i)
    CHECK(dense[static_cast<size_t>(i)] == 1 + array[static_cast<size_t>(view.Place(i))]);
}

}  // namespace
}  // namespace mxtrain
