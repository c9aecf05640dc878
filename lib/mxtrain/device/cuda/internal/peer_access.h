// SPDX-License-Identifier: Apache-2.0
#pragma once
// Direct access between the memories of two GPUs, which the CUDA runtime grants on request: a copy
// between them then takes NVLink or PCIe alone. Without it the driver passes the bytes through host
// memory.
#include <map>
#include <utility>

#include "mxtrain/base/mutex.h"

namespace mxtrain::cuda {

// From any thread.
class PeerAccess {
 public:
  // Asks for access in both directions, once for two GPUs, and says whether they have it.
  bool Between(int a, int b);

 private:
  Mutex mutex_;
  std::map<std::pair<int, int>, bool> known_ MXTRAIN_GUARDED_BY(mutex_);  // the smaller id first
};

}  // namespace mxtrain::cuda
