#pragma once
// Threads of our own. Where the system gives no further one, that is an error with its reason (kMemory), and those that run already are ended.
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
          "the system gives no further thread: {}; raise the limit (ulimit -u, or that of the container), or take fewer (--threads, data.workers)",
          error.code().message());
  }
}

// Threads that work with what their owner holds. They end with the group, also where its owner is never made whole: as a member it stands last.
class ThreadGroup {
 public:
  // `tell`: lets the functions of all threads return.
  explicit ThreadGroup(std::function<void()> tell) : tell_(std::move(tell)) {}
  ~ThreadGroup() { End(); }
  ThreadGroup(const ThreadGroup&) = delete;
  ThreadGroup& operator=(const ThreadGroup&) = delete;

  template <typename Function>
  void Start(Function&& function) {
    threads_.reserve(threads_.size() + 1);
    threads_.push_back(StartThread(std::forward<Function>(function)));
  }
  // Waits for the functions to return by themselves.
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
