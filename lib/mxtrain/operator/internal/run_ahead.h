// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bounds the number of imperative calls pending in the engine. A pushed call holds its arrays and
// plan, so a loop that runs much faster than its operators would otherwise fill memory. Private to
// this module; thread-safe.
#include <memory>

#include "mxtrain/base/mutex.h"
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
    MutexLock lock(mutex_);
    if (!engine::FunctionScope::Inside(&engine)) {
      while (calls_ >= kMostCalls) left_.Wait(lock);
    }
    ++calls_;
    return Ticket(this);
  }

 private:
  void Remove() {
    const MutexLock lock(mutex_);
    --calls_;
    left_.NotifyOne();
  }

  Mutex mutex_;
  ConditionVariable left_;
  int calls_ MXTRAIN_GUARDED_BY(mutex_) = 0;
};

}  // namespace mxtrain::imperative
