#pragma once
// Bounds how many imperative calls stand in the engine: what a call pushes holds its arrays and plan, so a loop that is much faster than its
// operators would fill memory with them. Private to this module; thread-safe.
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
  using Ticket = std::unique_ptr<RunAhead, Leave>;  // of one call, until its function has ended

  static RunAhead& Of(Runtime& runtime) {
    return *std::static_pointer_cast<RunAhead>(runtime.Extension("run ahead", [] { return std::make_shared<RunAhead>(); }));
  }

  // Waits until fewer than kMostCalls are under way; inside a function of the engine, which would wait for itself, it does not.
  Ticket Enter(const engine::Engine& engine) {
    std::unique_lock lock(mutex_);
    if (!engine::FunctionScope::Inside(&engine)) left_.wait(lock, [&] { return calls_ < kMostCalls; });
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
