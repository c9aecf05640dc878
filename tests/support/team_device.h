// SPDX-License-Identifier: Apache-2.0
#pragma once
// A device for code written for teams (operator/rows.h): the host, where the three members of a
// team take turns, each running to its next Fold. OnTeams{ctx} in place of OnGpu{ctx} runs GPU
// kernels on machines without a GPU.
#include <ucontext.h>

#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "mxtrain/operator/rows.h"

namespace mxtrain::test {

inline constexpr int kTeamSize = 3;

// Also accepted by functions for OnCpu.
struct OnTeams : OnCpu {
  static constexpr DeviceType kType = DeviceType::kGPU;
  static constexpr const char* kKernelName = "teams";
  static constexpr int kMembers = kTeamSize;
  explicit OnTeams(RunContext run) : OnCpu{run} {}
};

// The members of one team: separate contexts, resumed in turn.
class TeamSchedule {
 public:
  // body(rank), on every member; returns when all have finished.
  template <typename F>
  void Run(const F& body) {
    run_ = [](const void* f, int rank) { (*static_cast<const F*>(f))(rank); };
    body_ = &body;
    for (int rank = 0; rank < kTeamSize; ++rank) Start(rank);
    for (bool any = true; any;) {
      any = false;
      for (rank_ = 0; rank_ < kTeamSize; ++rank_) {
        Member& member = members_[static_cast<size_t>(rank_)];
        if (member.ended) continue;
        swapcontext(&scheduler_, &member.context);
        any = any || !member.ended;
      }
    }
  }

  // Called by a member. All pass a value, then all get the values of all. A member is at most one
  // fold ahead of another.
  template <typename V, typename Op>
  V Fold(int rank, V value, Op op) {
    static_assert(sizeof(V) <= kWidest && std::is_trivially_copyable_v<V>);
    Member& member = members_[static_cast<size_t>(rank)];
    auto& given = given_[static_cast<size_t>(member.folds++ % 2)];
    std::memcpy(given[static_cast<size_t>(rank)].data(), &value, sizeof(V));
    swapcontext(&member.context, &scheduler_);
    std::memcpy(static_cast<void*>(&value), given[0].data(), sizeof(V));
    for (size_t other = 1; other < kTeamSize; ++other) {
      V next = value;
      std::memcpy(static_cast<void*>(&next), given[other].data(), sizeof(V));
      value = op(value, next);
    }
    return value;
  }

 private:
  static constexpr size_t kStackBytes = 128 << 10, kWidest = 64;
  struct Member {
    ucontext_t context;
    std::vector<char> stack = std::vector<char>(kStackBytes);
    bool ended = false;
    int folds = 0;
  };

  void Start(int rank) {
    Member& member = members_[static_cast<size_t>(rank)];
    member.ended = false;
    member.folds = 0;
    getcontext(&member.context);
    member.context.uc_stack.ss_sp = member.stack.data();
    member.context.uc_stack.ss_size = member.stack.size();
    member.context.uc_link = &scheduler_;
    const auto self = reinterpret_cast<uintptr_t>(this);
    makecontext(&member.context, reinterpret_cast<void (*)()>(&Enter), 2,
                static_cast<unsigned>(self >> 32), static_cast<unsigned>(self));
  }
  static void Enter(unsigned high, unsigned low) {
    auto* self = reinterpret_cast<TeamSchedule*>(static_cast<uintptr_t>(high) << 32 | low);
    const int rank = self->rank_;
    self->run_(self->body_, rank);
    self->members_[static_cast<size_t>(rank)].ended = true;
  }

  void (*run_)(const void*, int) = nullptr;
  const void* body_ = nullptr;
  int rank_ = 0;  // of the running member
  ucontext_t scheduler_;
  std::array<Member, kTeamSize> members_;
  std::array<std::array<std::array<char, kWidest>, kTeamSize>, 2> given_;
};

struct TurnTeam {
  TeamSchedule* schedule;
  int member;
  int rank() const { return member; }
  static constexpr int size() { return kTeamSize; }
  template <typename V, typename Op>
  V Fold(V value, Op op) const {
    return schedule->Fold(member, value, op);
  }
};

// As on a GPU, functors must be copyable byte by byte.
template <typename F>
void ForRows(const OnTeams&, int64_t rows, int64_t, const F& f) {
  static_assert(std::is_trivially_copyable_v<F>, "functors are copied to the device bytewise");
  const auto schedule = std::make_unique<TeamSchedule>();
  for (int64_t row = 0; row < rows; ++row) {
    schedule->Run([&](int rank) { f(TurnTeam{schedule.get(), rank}, row); });
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
