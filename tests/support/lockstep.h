// SPDX-License-Identifier: Apache-2.0
#pragma once
// Members of a team that take turns on one thread of the host: separate contexts, resumed in order,
// each of which runs to its next Exchange or Pause. A GPU's threads that wait for each other are
// such members.
#include <ucontext.h>

#include <array>
#include <cstring>
#include <type_traits>
#include <vector>

namespace mxtrain::test {

template <int kSize>
class Lockstep {
 public:
  // body(rank), on every member. It outlives the steps.
  template <typename F>
  void Start(const F& body) {
    run_ = [](const void* f, int rank) { (*static_cast<const F*>(f))(rank); };
    body_ = &body;
    for (int rank = 0; rank < kSize; ++rank) Begin(rank);
  }
  // Resumes every member once; false if all have ended.
  bool Step() {
    bool any = false;
    for (rank_ = 0; rank_ < kSize; ++rank_) {
      Member& member = members_[static_cast<size_t>(rank_)];
      if (member.ended) continue;
      swapcontext(&scheduler_, &member.context);
      any = any || !member.ended;
    }
    return any;
  }

  // Called by a member. All pass a value, then all get the values of all. A member is at most one
  // exchange ahead of another.
  template <typename V>
  std::array<V, kSize> Exchange(int rank, const V& value) {
    static_assert(sizeof(V) <= kWidest && std::is_trivially_copyable_v<V>);
    Member& member = members_[static_cast<size_t>(rank)];
    auto& given = given_[static_cast<size_t>(member.exchanges++ % 2)];
    std::memcpy(given[static_cast<size_t>(rank)].data(), &value, sizeof(V));
    Pause(rank);
    std::array<V, kSize> all;
    for (size_t i = 0; i < kSize; ++i)
      std::memcpy(static_cast<void*>(&all[i]), given[i].data(), sizeof(V));
    return all;
  }
  // Called by a member: lets the others run.
  void Pause(int rank) { swapcontext(&members_[static_cast<size_t>(rank)].context, &scheduler_); }

 private:
  static constexpr size_t kStackBytes = 128 << 10, kWidest = 64;
  struct Member {
    ucontext_t context;
    std::vector<char> stack = std::vector<char>(kStackBytes);
    bool ended = false;
    int exchanges = 0;
  };

  void Begin(int rank) {
    Member& member = members_[static_cast<size_t>(rank)];
    member.ended = false;
    member.exchanges = 0;
    getcontext(&member.context);
    member.context.uc_stack.ss_sp = member.stack.data();
    member.context.uc_stack.ss_size = member.stack.size();
    member.context.uc_link = &scheduler_;
    const auto self = reinterpret_cast<uintptr_t>(this);
    makecontext(&member.context, reinterpret_cast<void (*)()>(&Enter), 2,
                static_cast<unsigned>(self >> 32), static_cast<unsigned>(self));
  }
  static void Enter(unsigned high, unsigned low) {
    auto* self = reinterpret_cast<Lockstep*>(static_cast<uintptr_t>(high) << 32 | low);
    const int rank = self->rank_;
    self->run_(self->body_, rank);
    self->members_[static_cast<size_t>(rank)].ended = true;
  }

  void (*run_)(const void*, int) = nullptr;
  const void* body_ = nullptr;
  int rank_ = 0;  // of the running member
  ucontext_t scheduler_;
  std::array<Member, kSize> members_;
  std::array<std::array<std::array<char, kWidest>, kSize>, 2> given_;
};

}  // namespace mxtrain::test
