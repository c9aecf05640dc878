// SPDX-License-Identifier: Apache-2.0
#pragma once
// A device without hardware: a stream is a thread that executes its work in order, sometimes after
// a pause. It tests the engine's guarantees for devices on machines without any.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/device/timed_event.h"

namespace mxtrain::test {

class FakeEvent final : public TimedEvent {
 public:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool come = false;
    double seconds = 0;  // by the clock of the stream
    std::string failure;
  };
  void Wait() override { WaitFor(*state_); }
  double SecondsSince(const TimedEvent& earlier) const override {
    return state_->seconds - static_cast<const FakeEvent&>(earlier).state_->seconds;
  }
  static void WaitFor(State& state) {
    std::unique_lock lock(state.mutex);
    state.changed.wait(lock, [&] { return state.come; });
    if (!state.failure.empty()) Throw(ErrorKind::kDevice, "{}", state.failure);
  }

 private:
  friend class FakeStream;
  // Of the last recording: a thread waiting for an earlier one keeps that.
  std::shared_ptr<State> state_;
};

struct FakeGraph final : CapturedGraph {
  std::vector<std::function<void()>> kernels;
};

class FakeStream final : public Stream {
 public:
  explicit FakeStream(uint32_t seed = 1, bool pauses = false)
      : random_(seed), pauses_(pauses), thread_([this] { Run(); }) {}
  ~FakeStream() override {
    Give({});
    thread_.join();
  }

  // A kernel: runs later, in order, unless the device has failed. It takes this long by the clock
  // of the stream, which stands still otherwise.
  void Launch(std::function<void()> kernel, double seconds = 0) {
    if (seconds > 0) {
      kernel = [this, seconds, work = std::move(kernel)] {
        work();
        clock_ += seconds;
      };
    }
    if (capture_) return capture_->kernels.push_back(std::move(kernel));
    Give([this, kernel = std::move(kernel)] {
      if (failure_.empty()) kernel();
    });
  }
  // From now on the device does nothing more, and every wait for it fails.
  void Break(std::string failure) {
    Give([this, failure = std::move(failure)] { failure_ = failure; });
  }

  std::unique_ptr<Event> NewEvent() override { return std::make_unique<FakeEvent>(); }
  void Record(Event& event) override {
    auto state = std::make_shared<FakeEvent::State>();
    static_cast<FakeEvent&>(event).state_ = state;
    Give([this, state] {
      const std::lock_guard lock(state->mutex);
      state->come = true;
      state->seconds = clock_;
      state->failure = failure_;
      state->changed.notify_all();
    });
  }
  void WaitFor(const Event& event) override {
    Give([this, state = static_cast<const FakeEvent&>(event).state_] {
      try {
        FakeEvent::WaitFor(*state);
      } catch (const Error& error) {
        failure_ = error.what();
      }
    });
  }

  bool BeginCapture() override {
    if (captures_ == Captures::kBeginThrows) Throw(ErrorKind::kDevice, "BeginCapture failed");
    capture_ = std::make_unique<FakeGraph>();
    return true;
  }
  std::unique_ptr<CapturedGraph> EndCapture() override {
    std::unique_ptr<CapturedGraph> recording = std::move(capture_);
    if (captures_ == Captures::kEndThrows) Throw(ErrorKind::kDevice, "EndCapture failed");
    if (captures_ == Captures::kNull) recording.reset();
    return recording;
  }
  void Replay(CapturedGraph& recording) override {
    ++replays_;
    for (const auto& kernel : static_cast<FakeGraph&>(recording).kernels) Launch(kernel);
  }
  // By all streams together.
  static int replays() { return replays_; }
  // What becomes of captures from now on.
  enum class Captures { kWork, kNull, kBeginThrows, kEndThrows };
  static void SetCaptures(Captures captures) { captures_ = captures; }

 private:
  // Empty: stop.
  void Give(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
    changed_.notify_one();
  }
  void Run() {
    while (true) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !queue_.empty(); });
      const std::function<void()> work = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      if (!work) return;
      if (pauses_ && random_() % 4 == 0)
        std::this_thread::sleep_for(std::chrono::microseconds(random_() % 50));
      work();
    }
  }

  static inline std::atomic<int> replays_ = 0;
  static inline std::atomic<Captures> captures_ = Captures::kWork;
  std::unique_ptr<FakeGraph> capture_;  // of the issuing thread
  std::mt19937 random_;                 // of the stream's thread, like clock_ and failure_
  const bool pauses_;
  double clock_ = 0;
  std::string failure_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;  // guarded by mutex_
  std::thread thread_;                       // last: it uses the other members
};

// Issues the work of a device function to the stream or, without one, executes it.
inline void Do(const RunContext& ctx, std::function<void()> work, double seconds = 0) {
  if (ctx.stream) {
    static_cast<FakeStream*>(ctx.stream)->Launch(std::move(work), seconds);
  } else {
    work();
  }
}

}  // namespace mxtrain::test
