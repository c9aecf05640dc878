// SPDX-License-Identifier: Apache-2.0
#pragma once
// Time as a device counts it: between two points in the work of one of its streams.
#include <memory>

#include "mxtrain/device/context.h"

namespace mxtrain {

// An event that also notes when the device came to it.
class MXTRAIN_API TimedEvent : public Event {
 public:
  // Seconds from `earlier` to this event, both recorded on the same stream and done. Throws
  // kDevice.
  virtual double SecondsSince(const TimedEvent& earlier) const = 0;
};

// Base of a backend whose devices tell the time.
class MXTRAIN_API TimingBackend {
 public:
  virtual ~TimingBackend() = default;
  // For the streams of this device. Not to be recorded during a capture.
  virtual std::unique_ptr<TimedEvent> NewTimedEvent(Context ctx) = 0;
};

}  // namespace mxtrain
