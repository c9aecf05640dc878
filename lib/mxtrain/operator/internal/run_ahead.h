// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bounds the number of imperative calls pending in the engine. A pushed call holds its arrays and
// plan, so a loop that runs much faster than its operators would otherwise fill memory. Private to
// this module; thread-safe.
#include <condition_variable>
#include <memory>
#include <mutex>

#include "mxtrain/engine/function_scope.h"
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

  // Blocks until fewer than kMostCalls are pending. Does not block inside an engine function, which
  // would wait for itself.
  Ticket Enter(const engine::Engine& engine) {
    std::unique_lock lock(mutex_);
    if (!engine::FunctionScope::Inside(&engine))
      left_.wait(lock, [&] { return calls_ < kMostCalls; });
    ++calls_;
    return Ticket(this);
  }

 private:
  void Remove() {
    const std::lock_guard lock(mutex_);
    --calls_;
    left_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable left_;
  int calls_ = 0;  // guarded by mutex_
};

}  // namespace mxtrain::imperative
