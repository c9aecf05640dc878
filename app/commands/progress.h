// SPDX-License-Identifier: Apache-2.0
#pragma once
// Progress of a loop over many items: a bar on a terminal, elsewhere a line after 2 s and then
// every 30 s, as in training.
#include <chrono>
#include <cstdint>
#include <string>

#include "app/console/console.h"
#include "mxtrain/base/mutex.h"

namespace mxtrain::commands {

// Thread-safe. Removed from the terminal on destruction.
class Progress {
 public:
  // "reading 1200/60000 images  350 per second  2:48 left": `doing` "reading", `what` "images".
  Progress(console::Console& console, std::string doing, std::string what, int64_t total);
  ~Progress() { console_.ShowBar(""); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Add(int64_t count);

 private:
  using Clock = std::chrono::steady_clock;

  console::Console& console_;
  const std::string doing_, what_;
  const int64_t total_;
  const Clock::time_point begin_ = Clock::now();
  Mutex mutex_;
  int64_t done_ MXTRAIN_GUARDED_BY(mutex_) = 0;
  double next_seconds_ MXTRAIN_GUARDED_BY(mutex_) = 0;  // time of the next line
};

}  // namespace mxtrain::commands
