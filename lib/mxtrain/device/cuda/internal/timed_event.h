// SPDX-License-Identifier: Apache-2.0
#pragma once
// Events with times, for CudaStream::Record (stream.h).
#include "mxtrain/device/timed_event.h"

namespace mxtrain::cuda {

std::unique_ptr<TimedEvent> NewTimedEvent(int device);

}  // namespace mxtrain::cuda
