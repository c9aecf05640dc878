// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/ndarray/device_times.h"

#include "mxtrain/ndarray/runtime.h"

namespace mxtrain {

void DeviceTimes::Start() {
  runtime_.engine().WaitForAll();
  MutexLock lock(mutex_);
  spans_.clear();
  on_ = true;
}

std::map<std::string, double> DeviceTimes::Stop() {
  runtime_.engine().WaitForAll();
  MutexLock lock(mutex_);
  on_ = false;
  std::map<std::string, double> seconds;
  for (const Span& span : spans_) {
    span.end->Wait();
    seconds[span.name] += span.end->SecondsSince(*span.begin);
  }
  spans_.clear();
  return seconds;
}

DeviceTimes::Span DeviceTimes::Begin(const char* name, const RunContext& ctx) {
  if (!ctx.stream) return {};
  auto* timing = dynamic_cast<TimingBackend*>(&runtime_.backend(ctx.ctx));
  if (!timing) return {};
  Span span{name, timing->NewTimedEvent(ctx.ctx), timing->NewTimedEvent(ctx.ctx)};
  ctx.stream->Record(*span.begin);
  return span;
}

void DeviceTimes::End(const RunContext& ctx, Span span) {
  if (!span.begin) return;
  ctx.stream->Record(*span.end);
  MutexLock lock(mutex_);
  spans_.push_back(std::move(span));
}

DeviceTimes& DeviceTimesOf(Runtime& runtime) {
  const std::shared_ptr<void> times =
      runtime.Extension("device times", [&] { return std::make_shared<DeviceTimes>(runtime); });
  return *static_cast<DeviceTimes*>(times.get());
}

}  // namespace mxtrain
