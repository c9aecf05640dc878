// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/reduction.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <random>

#include "mxtrain/device/backend.h"
#include "tests/support/blobs.h"
#include "tests/support/team_device.h"

namespace mxtrain {
namespace {

using test::BlobOf;

struct MaxFold {
  static constexpr double kStart = -1e300;
  MXTRAIN_HD static double Step(double best, double x) { return x > best ? x : best; }
  MXTRAIN_HD static double Join(double a, double b) { return Step(a, b); }
};

// In the type of the elements; NaN wins.
struct LargestFold {
  static constexpr bool kSelects = true;
  static constexpr double kStart = -std::numeric_limits<double>::infinity();
  template <typename A>
  MXTRAIN_HD static A Step(A best, A x) {
    return ((x > best) | (x != x)) ? x : best;
  }
  template <typename A>
  MXTRAIN_HD static A Join(A a, A b) {
    return Step(a, b);
  }
};

// The result that element i belongs to.
int64_t ResultOf(int64_t i, const TShape& shape, const AxisFlags& reduced) {
  int64_t result = 0, step = 1;
  for (int k = shape.ndim() - 1; k >= 0; --k) {
    if (!reduced[static_cast<size_t>(k)]) {
      result += i % shape[k] * step;
      step *= shape[k];
    }
    i /= shape[k];
  }
  return result;
}

template <typename F, typename Device>
std::vector<double> Run(const Device& device, const TShape& shape, const AxisFlags& axes,
                        const std::vector<float>& x) {
  const Reduction reduction(shape, axes);
  std::vector<double> y(static_cast<size_t>(reduction.kept.size), -7);
  std::vector<double> scratch(static_cast<size_t>(reduction.ScratchBytes()) / sizeof(double));
  ReduceOver<F>(device, reduction, ArraySource<float>{x.data()}, scratch.data(),
                StoreFold<double>{y.data(), OpReqType::kWriteTo});
  return y;
}

void ExamineReduction(const TShape& shape, const AxisFlags& axes, std::mt19937& random,
                      bool on_teams = true) {
  CAPTURE(shape.ToString());
  std::vector<float> x(static_cast<size_t>(shape.Size()));
  // Whole numbers: sums in double are exact in any order.
  for (float& v : x) v = static_cast<float>(static_cast<int>(random() % 2000) - 1000);
  const Reduction reduction(shape, axes);
  std::vector<double> sums(static_cast<size_t>(reduction.kept.size)),
      largest(sums.size(), MaxFold::kStart);
  for (int64_t i = 0; i < shape.Size(); ++i) {
    const size_t to = static_cast<size_t>(ResultOf(i, shape, axes)), at = static_cast<size_t>(i);
    sums[to] += static_cast<double>(x[at]);
    largest[to] = std::max(largest[to], static_cast<double>(x[at]));
  }
  CHECK(Run<SumFold>(OnCpu{}, shape, axes, x) == sums);
  CHECK(Run<MaxFold>(OnCpu{}, shape, axes, x) == largest);
  if (shape.Size() > 0 && reduction.reduced.size > 0)
    CHECK(Run<LargestFold>(OnCpu{}, shape, axes, x) == largest);
  if (!on_teams || shape.Size() > 12000) return;  // teams take turns
  CHECK(Run<SumFold>(test::OnTeams({}), shape, axes, x) == sums);
  CHECK(Run<MaxFold>(test::OnTeams({}), shape, axes, x) == largest);
}

AxisFlags Flags(std::initializer_list<int> axes) {
  AxisFlags flags{};
  for (const int axis : axes) flags[static_cast<size_t>(axis)] = true;
  return flags;
}

TEST_CASE("random shapes are reduced as by their indices") {
  const auto backend = NewCpuBackend(2);
  backend->EnterThread();
  std::mt19937 random(5);
  for (int trial = 0; trial < 300; ++trial) {
    const int ndim = 1 + static_cast<int>(random() % 5);
    std::vector<int64_t> dims;
    AxisFlags axes{};
    for (int i = 0; i < ndim; ++i) {
      const int64_t lengths[] = {1, 2, 3, 5, 16, 33};
      dims.push_back(trial % 40 == 0 && i == ndim / 2 ? 0 : lengths[random() % 6]);
      axes[static_cast<size_t>(i)] = random() % 2;
    }
    if (TShape(dims).Size() <= 100000) ExamineReduction(TShape(dims), axes, random);
  }
  ExamineReduction({4099}, Flags({0}), random);
  ExamineReduction({2, 5000}, Flags({1}), random);
  ExamineReduction({2000, 5}, Flags({0}), random);
  // Long enough for slices: one result, few results, and columns of many rows.
  ExamineReduction({300001}, Flags({0}), random);
  ExamineReduction({3, 70000}, Flags({1}), random);
  ExamineReduction({60000, 5}, Flags({0}), random);
  ExamineReduction({20, 3, 4000}, Flags({0, 2}), random);
  ExamineReduction({700, 3, 90}, Flags({0}), random);
  ExamineReduction({2, 600, 700}, Flags({1}), random);
  // Rows too short for a task each, alone and with a leading axis; rows of more than all lanes.
  for (const int64_t length : {15, 16, 49, 63, 64, 65, 255, 256, 257, 1100}) {
    ExamineReduction({70, length}, Flags({1}), random, false);
    ExamineReduction({37, 9, length}, Flags({0, 2}), random, false);
    ExamineReduction({3, 4, 5, 7, length}, Flags({0, 2, 4}), random, false);
  }
  // Columns narrower and wider than a block of accumulators.
  for (const int64_t width : {1, 7, 63, 64, 1023, 1025, 2500}) {
    ExamineReduction({41, width}, Flags({0}), random, false);
    ExamineReduction({3, 11, 5, width}, Flags({0, 2}), random, false);
  }
  for (const TShape& shape : {TShape{0, 5}, TShape{5, 0}, TShape{0, 5, 3}, TShape{4, 0, 3}}) {
    ExamineReduction(shape, Flags({0}), random);
    ExamineReduction(shape, Flags({1}), random);
    ExamineReduction(shape, Flags({0, 1}), random);
  }
}

TEST_CASE("the largest of elements with a NaN is NaN, wherever it is") {
  for (const auto& [shape, axes] :
       {std::pair(TShape{3, 700}, Flags({1})), std::pair(TShape{40, 20}, Flags({1})),
        std::pair(TShape{300, 5}, Flags({0})), std::pair(TShape{9, 3, 40}, Flags({0, 2}))}) {
    for (int64_t at = 0; at < shape.Size(); at += 37) {
      std::vector<float> x(static_cast<size_t>(shape.Size()), -2.5F);
      x[static_cast<size_t>(at)] = std::numeric_limits<float>::quiet_NaN();
      const std::vector<double> y = Run<LargestFold>(OnCpu{}, shape, axes, x);
      const size_t hit = static_cast<size_t>(ResultOf(at, shape, axes));
      for (size_t i = 0; i < y.size(); ++i) CHECK((i == hit ? std::isnan(y[i]) : y[i] == -2.5));
    }
  }
}

TEST_CASE("a row is folded by one thread") {
  for (const int64_t n : {0, 1, 63, 64, 65, 300, 8192, 8200}) {
    std::vector<bfloat16> x(static_cast<size_t>(n));
    double sum = 0, largest = LargestFold::kStart;
    for (size_t i = 0; i < x.size(); ++i) {
      const double value = static_cast<double>(i * 7 % 101) - 50;
      x[i] = bfloat16(static_cast<float>(value));
      sum += value;
      largest = std::max(largest, value);
    }
    CHECK(FoldRow<SumFold>(x.data(), n) == sum);
    CHECK(FoldRow<LargestFold>(x.data(), n) == largest);
  }
}

struct ProductOfThree {
  float operator()(float a, float b, float c) const { return a * b * c; }
};
struct Product {
  template <typename C>
  C operator()(C a, C b) const {
    return a * b;
  }
};
struct Negative {
  template <typename C>
  C operator()(C x) const {
    return -x;
  }
};

TEST_CASE("sums of a function of broadcast arrays, and of a linear one") {
  const auto backend = NewCpuBackend(3);
  backend->EnterThread();
  std::mt19937 random(11);
  const auto fill = [&random](const TShape& shape) {
    std::vector<float> x(static_cast<size_t>(shape.Size()));
    for (float& v : x) v = static_cast<float>(static_cast<int>(random() % 41) - 20);
    return x;
  };
  for (const TShape& whole : {TShape{3, 5, 7, 9}, TShape{2, 3, 40, 30}, TShape{33, 1, 1, 65},
                              TShape{1200, 2, 1, 3}, TShape{2, 2, 1, 1300}, TShape{5, 600, 2, 2}}) {
    for (unsigned kept = 0; kept < 16; ++kept) {
      TShape part = whole, other = whole;
      AxisFlags reduced{};
      for (int i = 0; i < 4; ++i) {
        if ((kept >> i & 1) == 0) part[i] = 1;
        if (i % 2 == 0) other[i] = 1;
        reduced[static_cast<size_t>(i)] = part[i] != whole[i];
      }
      CAPTURE(whole.ToString());
      CAPTURE(part.ToString());
      std::vector<float> a = fill(whole), b = fill(part), c = fill(other);
      std::vector<double> products(static_cast<size_t>(part.Size())), sums(products.size());
      AxisFlags not_in_other{};
      for (int i = 0; i < 4; ++i) not_in_other[static_cast<size_t>(i)] = other[i] == 1;
      for (int64_t i = 0; i < whole.Size(); ++i) {
        const auto to = static_cast<size_t>(ResultOf(i, whole, reduced));
        const auto from = static_cast<size_t>(ResultOf(i, whole, not_in_other));
        const auto value = static_cast<double>(a[static_cast<size_t>(i)]);
        products[to] += value * static_cast<double>(b[to]) * static_cast<double>(c[from]);
        sums[to] -= value;
      }
      std::vector<float> y(products.size());
      std::vector<double> scratch(static_cast<size_t>(SumScratchBytes(whole, part)) / 8);
      const auto is = [&y](const std::vector<double>& expected) {
        for (size_t i = 0; i < y.size(); ++i) {
          if (y[i] != static_cast<float>(expected[i])) return false;
        }
        return true;
      };
      SumBroadcast<float>(OnCpu{}, whole, BlobOf(y, part), OpReqType::kWriteTo, scratch.data(),
                          ProductOfThree{}, Broadcast<float>(a.data(), whole),
                          Broadcast<float>(b.data(), part), Broadcast<float>(c.data(), other));
      CHECK(is(products));
      SumLinear<float>(OnCpu{}, BlobOf(a, whole), BlobOf(y, part), OpReqType::kWriteTo,
                       scratch.data(), Negative{});
      CHECK(is(sums));
    }
  }
}

TEST_CASE("sums have the same bits with any number of threads") {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  for (const auto& [shape, axes] :
       {std::pair(TShape{400000}, Flags({0})), std::pair(TShape{30000, 7}, Flags({0})),
        std::pair(TShape{64, 5, 900}, Flags({0, 2})), std::pair(TShape{700, 9, 49}, Flags({0, 2})),
        std::pair(TShape{5000, 49}, Flags({1})), std::pair(TShape{300, 1500}, Flags({0}))}) {
    CAPTURE(shape.ToString());
    TShape part = shape;
    for (int i = 0; i < shape.ndim(); ++i) {
      if (axes[static_cast<size_t>(i)]) part[i] = 1;
    }
    std::vector<float> x(static_cast<size_t>(shape.Size()));
    for (float& v : x) v = normal(random);
    const std::vector<double> a(x.begin(), x.end()), b(x.begin(), x.begin() + part.Size());
    std::vector<double> first, first_products;
    for (const int threads : {1, 2, 3, 4, 5}) {
      CAPTURE(threads);
      const auto backend = NewCpuBackend(threads);
      backend->EnterThread();
      const std::vector<double> sums = Run<SumFold>(OnCpu{}, shape, axes, x);
      if (first.empty()) first = sums;
      CHECK(sums == first);

      std::vector<double> products(b.size());
      std::vector<double> scratch(static_cast<size_t>(SumScratchBytes(shape, part)) / 8);
      SumBroadcast<double>(OnCpu{}, shape, BlobOf(products, part), OpReqType::kWriteTo,
                           scratch.data(), Product{}, Broadcast<double>(a.data(), shape),
                           Broadcast<double>(b.data(), part));
      if (first_products.empty()) first_products = products;
      CHECK(products == first_products);
    }
  }
}

}  // namespace
}  // namespace mxtrain
