// SPDX-License-Identifier: Apache-2.0
#pragma once
// A device for code written for teams (operator/rows.h): the host, where the three members of a
// team take turns, each running to its next Fold. OnTeams{ctx} in place of OnGpu{ctx} runs GPU
// kernels on machines without a GPU.
#include <memory>
#include <type_traits>

#include "mxtrain/operator/rows.h"
#include "tests/support/lockstep.h"

namespace mxtrain::test {

inline constexpr int kTeamSize = 3;

// Also accepted by functions for OnCpu.
struct OnTeams : OnCpu {
  static constexpr DeviceType kType = DeviceType::kGPU;
  static constexpr const char* kKernelName = "teams";
  static constexpr int kMembers = kTeamSize;
  explicit OnTeams(RunContext run) : OnCpu{run} {}
};

using TeamSchedule = Lockstep<kTeamSize>;

struct TurnTeam {
  TeamSchedule* schedule;
  int member;
  int rank() const { return member; }
  static constexpr int size() { return kTeamSize; }
  template <typename V, typename Op>
  V Fold(V value, Op op) const {
    const auto all = schedule->Exchange(member, value);
    value = all[0];
    for (size_t other = 1; other < kTeamSize; ++other) value = op(value, all[other]);
    return value;
  }
};

// As on a GPU, functors must be copyable byte by byte.
template <typename F>
void ForRows(const OnTeams&, int64_t rows, int64_t, const F& f) {
  static_assert(std::is_trivially_copyable_v<F>, "functors are copied to the device bytewise");
  const auto schedule = std::make_unique<TeamSchedule>();
  for (int64_t row = 0; row < rows; ++row) {
    const auto body = [&](int rank) { f(TurnTeam{schedule.get(), rank}, row); };
    schedule->Start(body);
    while (schedule->Step()) {
    }
  }
}
template <typename F>
void ForColumns(const OnTeams&, int64_t columns, int64_t, const F& f) {
  static_assert(std::is_trivially_copyable_v<F>, "functors are copied to the device bytewise");
  // The order of members does not matter.
  for (int64_t column = columns; column-- > 0;) f(SoloTeam{}, column);
}
template <typename F>
void Launch(const OnTeams&, int64_t n, const F& f) {
  static_assert(std::is_trivially_copyable_v<F>, "functors are copied to the device bytewise");
  for (int64_t i = n; i-- > 0;) f(i);
}

}  // namespace mxtrain::test
