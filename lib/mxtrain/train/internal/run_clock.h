// SPDX-License-Identifier: Apache-2.0
#pragma once
// Times of one Trainer::Run. Only training counts: the clock is paused during evaluation and saves.
// Used by the training thread.
#include <algorithm>
#include <chrono>
#include <cstdint>

namespace mxtrain {

struct RunClock {
  using Time = std::chrono::steady_clock;
  static constexpr int64_t kWarmupBatches = 20;  // excluded from the images per second of a run

  static double SecondsSince(Time::time_point from) {
    return std::chrono::duration<double>(Time::now() - from).count();
  }

  Time::time_point start = Time::now(), last_report = start, last_save = start;
  // Training time since the last report, across ends of epochs and saves.
  double report_seconds = 0, report_wait = 0;
  int64_t report_images = 0;
  // Training time since the last end of an epoch.
  double epoch_seconds = 0;
  int64_t epoch_images = 0;
  int64_t batches = 0;  // of the run

  // `waited`: for data, so far (data_wait.h).
  void Resume(double waited) {
    segment_ = Time::now();
    segment_wait_ = waited;
  }
  // Adds the segment that ends now; call after waiting for the engine.
  void Pause(double waited) {
    const double seconds = SecondsSince(segment_), wait = waited - segment_wait_;
    epoch_seconds += seconds;
    epoch_images += segment_images_;
    report_seconds += seconds;
    report_wait += wait;
    report_images += segment_images_;
    if (warmed_up()) {
      counted_seconds_ += seconds;
      counted_wait_ += wait;
      counted_images_ += segment_images_;
    }
    segment_images_ = 0;
    Resume(waited);
  }
  // Returns whether the batch is the last one of the warm-up.
  bool AddBatch(int64_t images) {
    segment_images_ += images;
    return ++batches == kWarmupBatches;
  }
  void BeginReport() {
    last_report = Time::now();
    report_seconds = report_wait = 0;
    report_images = 0;
  }
  void BeginEpoch() {
    epoch_seconds = 0;
    epoch_images = 0;
  }

  bool warmed_up() const { return batches > kWarmupBatches; }
  double ImagesPerSecond() const {
    return counted_seconds_ > 0 ? static_cast<double>(counted_images_) / counted_seconds_ : 0;
  }
  double WaitShare() const {
    return counted_seconds_ > 0 ? std::clamp(counted_wait_ / counted_seconds_, 0.0, 1.0) : 0;
  }

 private:
  // The running segment of training time.
  Time::time_point segment_ = start;
  double segment_wait_ = 0;
  int64_t segment_images_ = 0;
  // After the warm-up.
  double counted_seconds_ = 0, counted_wait_ = 0;
  int64_t counted_images_ = 0;
};

}  // namespace mxtrain
