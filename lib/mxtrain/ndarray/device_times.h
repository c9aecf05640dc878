// SPDX-License-Identifier: Apache-2.0
#pragma once
// What each operator takes on the devices of a Runtime: a pair of timed events around its work,
// which is issued kernel by kernel meanwhile, not as a captured graph. Of a device without a clock
// (device/timed_event.h), such as the CPU, nothing is measured.
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "mxtrain/base/mutex.h"
#include "mxtrain/device/timed_event.h"

namespace mxtrain {

class Runtime;

class MXTRAIN_API DeviceTimes {
 public:
  explicit DeviceTimes(Runtime& runtime) : runtime_(runtime) {}

  // Both wait for all work; no other thread may push any meanwhile. Both throw what the wait
  // throws.
  void Start();
  // Seconds since Start, summed by name.
  std::map<std::string, double> Stop();
  bool on() const { return on_.load(std::memory_order_relaxed); }

  // Calls work(), which issues to ctx.stream, and measures what it issues if this is on. On the
  // thread that issues to the stream.
  template <typename Work>
  void Measure(const char* name, const RunContext& ctx, const Work& work) {
    if (!on()) return work();
    Span span = Begin(name, ctx);
    work();
    End(ctx, std::move(span));
  }

 private:
  struct Span {
    std::string name;
    std::unique_ptr<TimedEvent> begin, end;  // null: no clock
  };
  Span Begin(const char* name, const RunContext& ctx);
  void End(const RunContext& ctx, Span span);

  Runtime& runtime_;
  std::atomic<bool> on_ = false;
  Mutex mutex_;
  std::vector<Span> spans_ MXTRAIN_GUARDED_BY(mutex_);
};

// Lives as long as the Runtime. From any thread.
MXTRAIN_API DeviceTimes& DeviceTimesOf(Runtime& runtime);

}  // namespace mxtrain
