// SPDX-License-Identifier: Apache-2.0
#pragma once
// Collects spans of time and writes them as Chrome/Perfetto trace JSON. When off, costs one relaxed
// load per function. All methods may be called from any thread. Times are nanoseconds of
// std::chrono::steady_clock.
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/base/clock.h"
#include "mxtrain/base/mutex.h"

namespace mxtrain::engine {

class Profiler {
 public:
  bool on() const { return on_.load(std::memory_order_relaxed); }
  void Start();
  // The trace as JSON text: an object with "traceEvents", times in microseconds since Start.
  std::string Stop();

  // The track of that name, created at first use. Tracks are shown in creation order.
  int Row(std::string_view name);
  void Add(int row, std::string_view name, int priority, int64_t begin_ns, int64_t end_ns);
  // A span that may overlap others: an asynchronous function from its start to its callback.
  void AddAsync(std::string_view name, int priority, int64_t begin_ns, int64_t end_ns);
  void AddCounter(std::string_view name, int64_t value, int64_t at_ns);

 private:
  static constexpr int kAsyncRow = -1;
  struct Span {
    int row;
    int priority;
    int64_t begin_ns;
    int64_t end_ns;
    std::string name;
  };
  struct Counter {
    int64_t value;
    int64_t at_ns;
    std::string name;
  };

  std::atomic<bool> on_{false};
  Mutex mutex_;
  int64_t start_ns_ MXTRAIN_GUARDED_BY(mutex_) = 0;
  // Index = row = "tid" of the trace.
  std::vector<std::string> rows_ MXTRAIN_GUARDED_BY(mutex_);
  std::vector<Span> spans_ MXTRAIN_GUARDED_BY(mutex_);
  std::vector<Counter> counters_ MXTRAIN_GUARDED_BY(mutex_);
};

// Records its own lifetime as a span of `row` if a trace was running at its start.
class ProfileScope {
 public:
  ProfileScope(Profiler& profiler, int row, const char* name, int priority)
      : profiler_(profiler),
        row_(row),
        name_(name),
        priority_(priority),
        begin_ns_(profiler.on() ? SteadyNanoseconds() : -1) {}
  ~ProfileScope() {
    if (begin_ns_ >= 0) profiler_.Add(row_, name_, priority_, begin_ns_, SteadyNanoseconds());
  }
  ProfileScope(const ProfileScope&) = delete;
  ProfileScope& operator=(const ProfileScope&) = delete;

 private:
  Profiler& profiler_;
  const int row_;
  const char* const name_;
  const int priority_;
  const int64_t begin_ns_;
};

}  // namespace mxtrain::engine
