// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bounds the number of imperative calls pending in the engine. A pushed call holds its arrays and
// plan, so a loop that runs much faster than its operators would otherwise fill memory. Private to
// this module; thread-safe.
#include <atomic>
#include <cstdint>
#include <memory>

#include "mxtrain/ndarray/runtime.h"

namespace mxtrain::imperative {

class RunAhead {
 public:
  static constexpr int kMostCalls = 4096;

  struct Leave {
    void operator()(RunAhead* left) const { left->Remove(); }
  };
  using Ticket = std::unique_ptr<RunAhead, Leave>;  // held by a call until its function has ended

  static RunAhead& Of(Runtime& runtime) {
    return *std::static_pointer_cast<RunAhead>(
        runtime.Extension("run ahead", [] { return std::make_shared<RunAhead>(); }));
  }

  // Blocks until fewer than kMostCalls are pending. Does not block for what the caller itself may
  // have to complete: inside an engine function, or while everything pending waits for callbacks.
  Ticket Enter(engine::Engine& engine) {
    while (true) {
      const uint64_t ended = engine.Ended();  // before the look at the calls
      if (calls_.load() < kMostCalls || !engine.AwaitEnd(ended)) break;
    }
    calls_.fetch_add(1);
    return Ticket(this);
  }

 private:
  void Remove() { calls_.fetch_sub(1); }  // before the engine counts the call as ended

  std::atomic<int> calls_{0};
};

}  // namespace mxtrain::imperative
