// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/gather.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "tests/support/blobs.h"
#include "tests/support/team_device.h"

namespace mxtrain {
namespace {

using test::BlobOf;

template <typename K>
struct KeyAt {
  const K* keys;
  K operator()(int64_t p) const { return keys[p]; }
};
struct HalfOf {
  uint32_t operator()(int64_t p) const { return static_cast<uint32_t>(p % 2); }
};

template <typename K>
std::vector<K> RandomKeys(int64_t count, K most, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<K> any(0, most);
  std::vector<K> keys(static_cast<size_t>(count));
  for (K& key : keys) key = any(random);
  return keys;
}

// The order of `keys`, and after that by the parity of positions too.
template <typename K, typename Device>
void CheckOrder(const Device& device, const std::vector<K>& keys, int bits) {
  const auto count = static_cast<int64_t>(keys.size());
  std::vector<uint32_t> expected(keys.size());
  std::iota(expected.begin(), expected.end(), 0u);
  std::stable_sort(expected.begin(), expected.end(),
                   [&](uint32_t a, uint32_t b) { return keys[a] < keys[b]; });
  std::vector<uint64_t> scratch(
      static_cast<size_t>(CeilDivide(PositionOrder<K, Device>::Bytes(count), 8)));
  PositionOrder<K, Device> order(device, count, scratch.data());
  order.SortBy(KeyAt<K>{keys.data()}, bits);
  CHECK(std::equal(expected.begin(), expected.end(), order.positions()));
  for (size_t p = 0; p < keys.size(); ++p) REQUIRE(order.keys()[p] == keys[expected[p]]);

  std::stable_partition(expected.begin(), expected.end(), [](uint32_t p) { return p % 2 == 0; });
  order.SortBy(HalfOf(), 1);
  CHECK(std::equal(expected.begin(), expected.end(), order.positions()));
}

template <typename Device>
void CheckOrders(const Device& device) {
  for (const int64_t count : {0, 1, 2, 300, 5000, 20000}) {
    CAPTURE(count);
    CheckOrder(device, RandomKeys<uint32_t>(count, 9, 1), 4);
    CheckOrder(device, RandomKeys<uint32_t>(count, 70000, 2), 17);
    CheckOrder(device, RandomKeys<uint32_t>(count, ~uint32_t{0}, 3), 32);
    CheckOrder(device, RandomKeys<uint64_t>(count, ~uint64_t{0}, 4), 64);
  }
}

TEST_CASE("positions are ordered by keys, then by themselves, on any number of threads") {
  const int before = TeamSize();
  for (const int team : {1, 2, 5}) {
    SetTeamSize(team);
    CheckOrders(OnCpu{});
  }
  SetTeamSize(before);
  CheckOrders(test::OnTeams{RunContext{}});
}

TEST_CASE("indices of any type") {
  const float numbers[] = {2.9f, -0.5f, -1.5f, std::nanf(""), 1e30f, -1e30f};
  const NumberReader reader(numbers, DType::kFloat32);
  CHECK(reader.Index(0) == 2);
  CHECK(reader.Index(1) == 0);
  CHECK(reader.Index(2) == -1);
  CHECK(reader.Index(3) == std::numeric_limits<int64_t>::min());
  CHECK(reader.Index(4) == std::numeric_limits<int64_t>::max());
  CHECK(reader.Index(5) == std::numeric_limits<int64_t>::min());
  const int64_t wide[] = {(int64_t{1} << 53) + 1};
  CHECK(NumberReader(wide, DType::kInt64).Index(0) == wide[0]);

  const RowIndex clip{reader, 3, kIndexClip}, wrap{reader, 3, kIndexWrap};
  const int64_t clipped[] = {2, 0, 0, 0, 2, 0};
  for (int64_t i = 0; i < 6; ++i) CHECK(clip(i) == clipped[i]);
  CHECK(wrap(0) == 2);
  CHECK(wrap(2) == 2);
  for (int64_t i = 0; i < 6; ++i) CHECK((wrap(i) >= 0 && wrap(i) < 3));
}

template <typename Device>
std::vector<float> Sums(const Device& device, const RowGrid& grid, std::vector<int32_t>& indices,
                        int64_t destinations, std::vector<float>& head) {
  const TakePlaces places{{NumberReader(indices.data(), DType::kInt32), destinations, kIndexClip}};
  std::vector<float> sums(static_cast<size_t>(grid.outer * destinations * grid.length), 7.0f);
  std::vector<uint64_t> scratch(static_cast<size_t>(CeilDivide(BytesOfSumRows<Device>(grid), 8)));
  SumRows(device, grid, places, destinations,
          BlobOf(head, TShape{grid.outer, grid.count, grid.length}), OpReqType::kWriteTo,
          BlobOf(sums, TShape{grid.outer, destinations, grid.length}), scratch.data(), "a test");
  return sums;
}

// The sums have the bits of those in the order of the positions.
TEST_CASE("sums of rows have the same bits on any number of threads") {
  struct {
    RowGrid grid;
    int64_t destinations;
  } const sizes[] = {{{1, 9000, 3}, 2}, {{1, 300, 700}, 3},   {{2, 500, 1}, 400},
                     {{3, 40, 65}, 1},  {{1, 700, 70}, 5000}, {{2, 0, 4}, 3}};
  const int before = TeamSize();
  for (const auto& [grid, destinations] : sizes) {
    CAPTURE(grid.count);
    std::mt19937_64 random(5);
    std::uniform_real_distribution<float> number(-1, 1);
    std::uniform_int_distribution<int32_t> row(0, static_cast<int32_t>(destinations) - 1);
    std::vector<float> head(static_cast<size_t>(grid.rows() * grid.length));
    for (float& h : head) h = number(random);
    std::vector<int32_t> indices(static_cast<size_t>(grid.count));
    for (int32_t& i : indices) i = row(random);

    std::vector<float> expected(static_cast<size_t>(grid.outer * destinations * grid.length));
    for (int64_t o = 0; o < grid.outer; ++o) {
      for (int64_t n = 0; n < grid.count; ++n) {
        const int64_t to = o * destinations + indices[static_cast<size_t>(n)];
        for (int64_t k = 0; k < grid.length; ++k) {
          expected[static_cast<size_t>(to * grid.length + k)] +=
              head[static_cast<size_t>((o * grid.count + n) * grid.length + k)];
        }
      }
    }
    for (const int team : {1, 2, 5}) {
      SetTeamSize(team);
      CHECK(Sums(OnCpu{}, grid, indices, destinations, head) == expected);
    }
    SetTeamSize(before);
    CHECK(Sums(test::OnTeams{RunContext{}}, grid, indices, destinations, head) == expected);
  }
}

}  // namespace
}  // namespace mxtrain
