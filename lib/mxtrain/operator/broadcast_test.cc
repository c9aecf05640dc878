// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/broadcast.h"

#include <doctest/doctest.h>

#include <random>

#include "tests/support/operator_case.h"

namespace mxtrain {
namespace {

using test::TestBackend;

TEST_CASE("a fast division is a division") {
  std::mt19937_64 random(1);
  constexpr int64_t kMost = (int64_t{1} << 31) - 1;
  const auto examine = [](int64_t n, int64_t divisor) {
    int64_t quotient, remainder;
    FastDivider(divisor).Divide(n, &quotient, &remainder);
    return quotient == n / divisor && remainder == n % divisor;
  };
  for (int64_t divisor : {int64_t{1}, int64_t{2}, int64_t{3}, int64_t{7}, int64_t{64}, int64_t{641},
                          int64_t{65537}, kMost - 1, kMost, kMost + 1, int64_t{1} << 40}) {
    for (int64_t n : {int64_t{0}, int64_t{1}, divisor - 1, divisor, divisor + 1, kMost - 1, kMost,
                      kMost + 1, (int64_t{1} << 40) + 5})
      CHECK(examine(n, divisor));
  }
  for (int trial = 0; trial < 100000; ++trial) {
    const int64_t divisor = 1 + static_cast<int64_t>(random() >> (33 + trial % 30));
    const int64_t n = static_cast<int64_t>(random() >> (24 + trial % 39));
    REQUIRE(examine(n, divisor));
    REQUIRE(examine(n / divisor * divisor, divisor));
  }
}

struct Weighted {
  template <typename C>
  MXTRAIN_HD C operator()(C a, C b, double c) const {
    return a + C(1000) * b + static_cast<C>(1e6 * c);
  }
};

// Any device but OnCpu: takes the path of GPUs.
struct OneByOne : OnCpu {};
template <typename F>
void Launch(const OneByOne&, int64_t n, F f) {
  for (int64_t i = 0; i < n; ++i) f(i);
}

TEST_CASE("random shapes are broadcast as by their indices") {
  TestBackend();
  std::mt19937 random(3);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int trial = 0; trial < 300; ++trial) {
    const int ndim = 1 + pick(5);
    std::vector<int64_t> whole, parts[3];
    for (int i = 0; i < ndim; ++i) {
      const int64_t lengths[] = {1, 2, 3, 5, 17, 40};
      whole.push_back(trial % 50 == 0 && i == 0 ? 0 : lengths[pick(6)]);
      for (auto& part : parts) part.push_back(pick(2) ? whole.back() : 1);
    }
    const TShape shape(whole), a(parts[0]), b(parts[1]), c(parts[2]);
    if (shape.Size() > 200000) continue;
    std::vector<float> x(static_cast<size_t>(a.Size())), y(static_cast<size_t>(b.Size()));
    std::vector<double> z(static_cast<size_t>(c.Size()));
    for (auto& v : x) v = static_cast<float>(pick(100));
    for (auto& v : y) v = static_cast<float>(pick(100));
    for (auto& v : z) v = pick(10);
    std::vector<float> expected, before(static_cast<size_t>(shape.Size()), 0.5f);
    for (int64_t i = 0; i < shape.Size(); ++i) {
      const auto at = [&](const TShape& part) {
        int64_t place = 0, step = 1, rest = i;
        for (int k = ndim - 1; k >= 0; --k) {
          if (part[k] != 1) place += rest % shape[k] * step;
          step *= part[k];
          rest /= shape[k];
        }
        return static_cast<size_t>(place);
      };
      expected.push_back(x[at(a)] + 1000 * y[at(b)] + static_cast<float>(1e6 * z[at(c)]));
    }
    std::vector<float> out = before;
    const TBlob blob{out.data(), shape, DType::kFloat32, {}, Context::cpu()};
    const Broadcast<float> first(x.data(), a), second(y.data(), b);
    const Broadcast<double> third(z.data(), c);
    MapBroadcast<float>(OnCpu{}, blob, OpReqType::kWriteTo, Weighted{}, first, second, third);
    CHECK(out == expected);
    MapBroadcast<float>(OneByOne{}, blob, OpReqType::kWriteTo, Weighted{}, first, second, third);
    CHECK(out == expected);
    out = before;
    MapBroadcast<float>(OnCpu{}, blob, OpReqType::kNullOp, Weighted{}, first, second, third);
    CHECK(out == before);
    MapBroadcast<float>(OnCpu{}, blob, OpReqType::kAddTo, Weighted{}, first, second, third);
    for (float& v : expected) v += 0.5f;
    CHECK(out == expected);
  }
}

}  // namespace
}  // namespace mxtrain
