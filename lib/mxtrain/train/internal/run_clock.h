// SPDX-License-Identifier: Apache-2.0
#pragma once
// Times of one Trainer::Run. Only training counts: the clock is paused during evaluation and saves.
// Used by the training thread.
#include <algorithm>
#include <chrono>
#include <cstdint>

namespace mxtrain {

// Training time, and what was done in it.
struct Pace {
  double seconds = 0, waited = 0;  // waited: for data (data_wait.h)
  int64_t images = 0, batches = 0;

  Pace& operator+=(const Pace& other) {
    seconds += other.seconds;
    waited += other.waited;
    images += other.images;
    batches += other.batches;
    return *this;
  }
  double ImagesPerSecond() const { return seconds > 0 ? static_cast<double>(images) / seconds : 0; }
  double WaitShare() const { return seconds > 0 ? std::clamp(waited / seconds, 0.0, 1.0) : 0; }
};

struct RunClock {
  using Time = std::chrono::steady_clock;
  // The first batches are slower (memory, threads, pipelines that are empty), and the next ones may
  // have been prefetched during those.
  static constexpr int64_t kWarmupBatches = 20, kLeastAfterWarmup = 30;

  static double SecondsSince(Time::time_point from) {
    return std::chrono::duration<double>(Time::now() - from).count();
  }

  Time::time_point start = Time::now(), last_report = start, last_save = start;
  Pace report;  // since the last report, across ends of epochs and saves
  Pace epoch;   // since the last end of an epoch

  // `waited`: for data, so far.
  void Resume(double waited) {
    segment_begin_ = Time::now();
    waited_before_ = waited;
  }
  // Adds the segment that ends now; call after waiting for the engine.
  void Pause(double waited) {
    segment_.seconds = SecondsSince(segment_begin_);
    segment_.waited = waited - waited_before_;
    const bool steady = warmed_up();
    for (Pace* sum : {&report, &epoch, &run_}) *sum += segment_;
    if (steady) steady_ += segment_;
    segment_ = {};
    Resume(waited);
  }
  // Returns whether the batch is the last one of the warm-up: pause then.
  bool AddBatch(int64_t images) {
    segment_.images += images;
    ++segment_.batches;
    return batches() == kWarmupBatches;
  }
  void BeginReport() {
    last_report = Time::now();
    report = {};
  }

  int64_t batches() const { return run_.batches + segment_.batches; }  // of the run
  bool warmed_up() const { return batches() > kWarmupBatches; }
  // Whether the run is too short to leave its warm-up out of its pace.
  bool is_brief() const { return steady_.batches < kLeastAfterWarmup; }
  // Of the run: after the warm-up; of all of a brief run.
  const Pace& PaceOfRun() const { return is_brief() ? run_ : steady_; }

 private:
  // The running segment of training time.
  Time::time_point segment_begin_ = start;
  double waited_before_ = 0;
  Pace segment_;
  Pace run_, steady_;  // steady: after the warm-up
};

}  // namespace mxtrain
