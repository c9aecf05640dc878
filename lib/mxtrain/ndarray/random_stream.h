// SPDX-License-Identifier: Apache-2.0
#pragma once
// Streams of random numbers that share a name.
#include <cstdint>

#include "mxtrain/base/philox.h"

namespace mxtrain {

// The stream of one request of one net, of those that draw under the same name, whose own stream
// (StreamOf) is that of the first request of the first net.
inline uint64_t StreamAmong(uint64_t of_name, int net, int request) {
  if (net == 0 && request == 0) return of_name;
  const PhiloxBits bits =
      Philox(of_name, static_cast<uint64_t>(net), static_cast<uint64_t>(request), 0);
  return uint64_t{bits.v[0]} << 32 | bits.v[1];
}

}  // namespace mxtrain
