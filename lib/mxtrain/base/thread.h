// SPDX-License-Identifier: Apache-2.0
#pragma once
// Threads of this library. If the system cannot create one, that is an error with its reason
// (kMemory), and the threads already running are ended.
#include <functional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "mxtrain/base/error.h"

namespace mxtrain {

template <typename Function>
std::thread StartThread(Function&& function) {
  try {
    return std::thread(std::forward<Function>(function));
  } catch (const std::system_error& error) {
    Throw(ErrorKind::kMemory,
          "cannot create a thread: {}; raise the limit (ulimit -u, or that of the container), or "
          "use fewer threads (--threads, data.workers)",
          error.code().message());
  }
}

// For a thread that works for some microseconds and is waited for: its pauses end when they should,
// and where the system can (Linux 6.12), it does not wait for the end of the time slice of a thread
// that computes on the same core.
MXTRAIN_API void RunPromptly();

// Threads that work on their owner's members. They end with the group, even if the owner's
// constructor throws: declare the group as the last member.
class ThreadGroup {
 public:
  // `tell`: makes the functions of all threads return.
  explicit ThreadGroup(std::function<void()> tell) : tell_(std::move(tell)) {}
  ~ThreadGroup() { End(); }
  ThreadGroup(const ThreadGroup&) = delete;
  ThreadGroup& operator=(const ThreadGroup&) = delete;

  template <typename Function>
  void Start(Function&& function) {
    threads_.reserve(threads_.size() + 1);
    threads_.push_back(StartThread(std::forward<Function>(function)));
  }
  // Waits for the functions to return on their own.
  void Join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  void End() {
    if (!threads_.empty()) tell_();
    Join();
  }

 private:
  const std::function<void()> tell_;
  std::vector<std::thread> threads_;
};

}  // namespace mxtrain
