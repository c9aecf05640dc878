// SPDX-License-Identifier: Apache-2.0
#include "app/commands/progress.h"

#include <algorithm>
#include <utility>

#include "app/report/output.h"
#include "mxtrain/base/format.h"

namespace mxtrain::commands {

Progress::Progress(console::Console& console, std::string doing, std::string what, int64_t total)
    : console_(console), doing_(std::move(doing)), what_(std::move(what)), total_(total) {}

void Progress::Add(int64_t count) {
  constexpr double kBarSeconds = 0.2, kFirstLineSeconds = 2, kLineSeconds = 30;
  MutexLock lock(mutex_);
  done_ += count;
  const double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
  // Short tasks print nothing.
  const bool due = console_.bar() ? seconds >= next_seconds_
                                  : seconds >= std::max(next_seconds_, kFirstLineSeconds);
  if (!due || done_ >= total_ || !(console_.bar() || console_.lines())) return;
  const double rate = static_cast<double>(done_) / std::max(seconds, 1e-9);
  const std::string text =
      format("{} {}/{} {}  {} per second  {} left", doing_, done_, total_, what_,
             report::FormatNumber(rate),
             report::FormatDuration(static_cast<double>(total_ - done_) / std::max(rate, 1e-9)));
  if (console_.bar()) {
    console_.ShowBar(text);
    next_seconds_ = seconds + kBarSeconds;
  } else {
    console_.Message(LogLevel::kInfo, text);
    next_seconds_ = seconds + kLineSeconds;
  }
}

}  // namespace mxtrain::commands
