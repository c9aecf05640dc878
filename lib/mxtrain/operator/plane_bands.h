// SPDX-License-Identifier: Apache-2.0
#pragma once
// Scattered sums without atomics: the gradient of what reads an image at places that depend on
// data. Every plane is divided into bands of rows, each owned by one thread, which goes through
// everything that may reach its band, in order. So results repeat bit for bit, whatever the number
// of bands.
#include <algorithm>

#include "mxtrain/operator/kernel.h"

namespace mxtrain {

struct PlaneBands {
  int64_t planes = 0, height = 0;
  int64_t count = 1;  // bands of a plane

  struct Band {
    int64_t plane, begin, end;  // rows [begin, end)
    MXTRAIN_HD bool Has(int64_t row) const { return row >= begin && row < end; }
  };
  int64_t bands() const { return planes * count; }
  MXTRAIN_HD Band Of(int64_t n) const {
    const int64_t band = n % count;
    return {n / count, height * band / count, height * (band + 1) / count};
  }
};

// A CPU thread has whole planes; a GPU needs more threads than there are planes.
template <typename Device>
PlaneBands BandsOf(int64_t planes, int64_t height) {
  constexpr int64_t kThreads = int64_t{1} << 17;
  if constexpr (Device::kType == DeviceType::kCPU) {
    return {planes, height, 1};
  } else {
    const int64_t wanted = kThreads / std::max<int64_t>(planes, 1);
    return {planes, height, std::clamp<int64_t>(wanted, 1, std::max<int64_t>(height, 1))};
  }
}

// Where the sums of a gradient grow: in the gradient itself, if it has their type and is written,
// else in `scratch`, which has as many elements.
template <typename T>
AccumulatorOf<T>* RoomForSums(const TBlob& gradient, [[maybe_unused]] OpReqType req,
                              void* scratch) {
  if constexpr (std::is_same_v<T, AccumulatorOf<T>>) {
    if (req != OpReqType::kAddTo) return gradient.dptr<T>();
  }
  return static_cast<AccumulatorOf<T>*>(scratch);
}

// The sums of RoomForSums are the gradient, or are added to it.
template <typename T, typename Device>
void StoreSums(const Device& device, const AccumulatorOf<T>* sums, OpReqType req,
               const TBlob& gradient) {
  if (static_cast<const void*>(sums) == gradient.data) return;
  MapOn<T>(device, gradient, req, ElementAt<AccumulatorOf<T>, AccumulatorOf<T>>{sums});
}

}  // namespace mxtrain
