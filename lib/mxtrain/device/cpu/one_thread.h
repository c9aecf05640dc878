// SPDX-License-Identifier: Apache-2.0
#pragma once
// Work that takes less time than waking a team.
#include "mxtrain/base/macros.h"

namespace mxtrain {

// While one exists, what its thread calls runs on that thread alone: ParallelFor, and libraries
// that use OpenMP. TeamSize() is 1.
class MXTRAIN_API OneThread {
 public:
  explicit OneThread(bool wanted = true);
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  const int before_;  // team size; 0: not wanted
};

}  // namespace mxtrain
