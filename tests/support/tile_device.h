// SPDX-License-Identifier: Apache-2.0
#pragma once
// Matrix units (operator/tile_team.h) for the device of team_device.h: played by the host. Lanes of
// a warp run in step; warps, drawn at random, run far ahead of each other, so what one of them
// reads before another has written it, for want of a Sync, is seen. Copies into shared memory are
// done when they are waited for; before, there are NaNs. The layout of matrices is that of PTX,
// stated here a second time.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "mxtrain/operator/tile_team.h"
#include "tests/support/team_device.h"

namespace mxtrain::test {

class TileSchedule {
 public:
  using Warp = Lockstep<kTileLanes>;
  // body(rank), on every member of a team.
  template <typename F>
  void Run(const F& body) {
    shared_.clear();
    arrived_ = {};
    for (int w = 0; w < kTileWarps; ++w) {
      bodies_[static_cast<size_t>(w)] = [&body, w](int lane) { body(w * kTileLanes + lane); };
      warps_[static_cast<size_t>(w)]->Start(bodies_[static_cast<size_t>(w)]);
    }
    std::vector<int> running(kTileWarps);
    std::iota(running.begin(), running.end(), 0);
    while (!running.empty()) {
      if (std::all_of(running.begin(), running.end(), [this](int w) { return Waits(w); }))
        FAIL("some warps have ended, the others wait for them");
      // One warp runs far ahead.
      constexpr uint64_t kMostSteps = 1000;
      const auto which = running.begin() + static_cast<long>(random_() % running.size());
      bool runs = true;
      for (uint64_t left = random_() % kMostSteps; runs && left > 0 && !Waits(*which); --left)
        runs = warp(*which).Step();
      if (!runs) running.erase(which);
    }
  }

  Warp& warp(int w) { return *warps_[static_cast<size_t>(w)]; }
  // The same memory for all members: there is one such array in a kernel.
  void* Shared(size_t bytes) {
    if (shared_.empty())
      shared_.resize(bytes / sizeof(Line) + 1, Line{{~uint64_t{0}, ~uint64_t{0}}});
    return shared_.data();
  }
  // Returns when all members have called it.
  void Sync(int w, int lane) {
    const int64_t mine = generation_;
    ++arrived_[static_cast<size_t>(w)];
    if (std::all_of(arrived_.begin(), arrived_.end(), [](int n) { return n == kTileLanes; })) {
      arrived_ = {};
      ++generation_;
    }
    do warp(w).Pause(lane);
    while (generation_ == mine);
  }

 private:
  bool Waits(int w) const { return arrived_[static_cast<size_t>(w)] == kTileLanes; }

  struct alignas(kTileAlignment) Line {
    uint64_t words[2];
  };
  std::mt19937_64 random_{1};
  std::array<std::unique_ptr<Warp>, kTileWarps> warps_ = {
      std::make_unique<Warp>(), std::make_unique<Warp>(), std::make_unique<Warp>(),
      std::make_unique<Warp>()};
  std::array<std::function<void(int)>, kTileWarps> bodies_;
  std::vector<Line> shared_;
  std::array<int, kTileWarps> arrived_ = {};  // lanes of each warp at the next Sync
  int64_t generation_ = 0;
};

class HostTileTeam {
 public:
  HostTileTeam(TileSchedule* schedule, int rank) : schedule_(schedule), rank_(rank) {}

  int rank() const { return rank_; }
  static constexpr int size() { return kTileMembers; }
  int warp() const { return rank_ / kTileLanes; }
  int lane() const { return rank_ % kTileLanes; }

  template <typename T, int kCount>
  T* Shared() const {
    return static_cast<T*>(schedule_->Shared(kCount * sizeof(T)));
  }
  void Sync() const { schedule_->Sync(warp(), lane()); }
  void CopyAsync(const void* from, void* to) const {
    CHECK_MESSAGE(Aligned(from), "the source of a copy");
    CHECK_MESSAGE(Aligned(to), "the target of a copy");
    std::memset(to, 0xff, kTileAlignment);
    copies_.push_back({from, to});
  }
  void AwaitCopies() const {
    for (const Copy& copy : copies_) std::memcpy(copy.to, copy.from, kTileAlignment);
    copies_.clear();
  }

  template <typename V>
  V ShuffleXor(V value, int mask) const {
    return Exchange(value)[static_cast<size_t>(lane() ^ mask)];
  }
  template <typename T>
  void LoadMatrices(const T* row, Fragment<4>* to) const {
    const auto rows = RowsOf(row);
    for (int i = 0; i < 4; ++i) {
      const T* from = rows[static_cast<size_t>(i * 8 + lane() / 4)];
      to->r[i] = Pair(from[lane() % 4 * 2], from[lane() % 4 * 2 + 1]);
    }
  }
  template <typename T>
  void LoadTransposed(const T* row, Fragment<4>* to) const {
    const auto rows = RowsOf(row);
    for (int i = 0; i < 4; ++i) {
      const auto first = static_cast<size_t>(i * 8 + lane() % 4 * 2);
      to->r[i] = Pair(rows[first][lane() / 4], rows[first + 1][lane() / 4]);
    }
  }
  template <typename T>
  void Multiply(const Fragment<4>& a, uint32_t b0, uint32_t b1, float (&c)[4]) const {
    struct Factors {
      Fragment<4> a;
      uint32_t b[2];
    };
    const auto all = Exchange(Factors{a, {b0, b1}});
    const auto half = [](uint32_t pair, int which) {
      T value;
      value.bits = static_cast<uint16_t>(which == 0 ? pair : pair >> 16);
      return static_cast<double>(static_cast<float>(value));
    };
    for (int i = 0; i < 4; ++i) {
      const int row = lane() / 4 + i / 2 * 8, column = lane() % 4 * 2 + i % 2;
      double sum = c[i];
      for (int k = 0; k < 16; ++k) {
        const auto of_row = static_cast<size_t>(row % 8 * 4 + k % 8 / 2),
                   of_column = static_cast<size_t>(column * 4 + k % 8 / 2);
        sum += half(all[of_row].a.r[row / 8 + k / 8 * 2], k % 2) *
               half(all[of_column].b[k / 8], k % 2);
      }
      c[i] = static_cast<float>(sum);
    }
  }

 private:
  struct Copy {
    const void* from;
    void* to;
  };

  static bool Aligned(const void* at) {
    return reinterpret_cast<uintptr_t>(at) % kTileAlignment == 0;
  }
  template <typename V>
  auto Exchange(const V& value) const {
    return schedule_->warp(warp()).Exchange(lane(), value);
  }
  template <typename T>
  auto RowsOf(const T* row) const {
    CHECK_MESSAGE(Aligned(row), "a row of a matrix");
    return Exchange(row);
  }
  template <typename T>
  static uint32_t Pair(T low, T high) {
    return static_cast<uint32_t>(low.bits) | static_cast<uint32_t>(high.bits) << 16;
  }

  TileSchedule* schedule_;
  int rank_;
  mutable std::vector<Copy> copies_;
};

template <typename F>
void ForTiles(const OnTeams&, int64_t tasks, const F& f) {
  static_assert(std::is_trivially_copyable_v<F>, "functors are copied to the device bytewise");
  // As a grid of two blocks, each with several tasks.
  constexpr int64_t kTeams = 2;
  TileSchedule schedule;
  for (int64_t first = 0; first < std::min(tasks, kTeams); ++first) {
    schedule.Run([&](int rank) {
      for (int64_t task = first; task < tasks; task += kTeams)
        f(HostTileTeam(&schedule, rank), task);
    });
  }
}

}  // namespace mxtrain::test
