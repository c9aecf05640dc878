// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/engine/internal/worker_pool.h"

#include "mxtrain/base/thread.h"

namespace mxtrain::engine {
namespace {
// About ten microseconds: longer than a push, shorter than a park and a wake-up.
constexpr int kYieldsBeforePark = 32;
}  // namespace

WorkerPool::WorkerPool(WorkRunner& runner, const EngineOptions& options, LaneKind kind,
                       int num_workers)
    : runner_(runner),
      options_(options),
      kind_(kind),
      num_workers_(num_workers),
      lane_(kind.ctx.type == DeviceType::kGPU ? std::make_unique<DeviceLane>(runner, kind.property)
                                              : nullptr) {}

void WorkerPool::Start() {
  std::call_once(started_, [this] {
    threads_.reserve(num_workers_);
    while (static_cast<int>(threads_.size()) < num_workers_) {
      threads_.push_back(
          StartThread([this, index = static_cast<int>(threads_.size())] { RunWorker(index); }));
      SpinLockGuard lock(lock_);
      ++started_workers_;
    }
  });
}

void WorkerPool::Stop() {
  {
    SpinLockGuard lock(lock_);
    stopping_ = true;
    waiting_.store(true, std::memory_order_relaxed);
  }
  {
    MutexLock lock(park_mutex_);
    calls_ += num_workers_;
  }
  called_.NotifyAll();
  for (std::thread& thread : threads_) thread.join();
}

void WorkerPool::Enqueue(Work* work) {
  bool call = false;
  {
    SpinLockGuard lock(lock_);
    queue_.Push(work);
    waiting_.store(true, std::memory_order_relaxed);
    if (sleepers_ > 0) {
      --sleepers_;
      call = true;
    }
  }
  if (!call) return;
  {
    MutexLock lock(park_mutex_);
    ++calls_;
  }
  called_.NotifyOne();
}

bool WorkerPool::Rests() const {
  SpinLockGuard lock(lock_);
  return queue_.empty() && sleepers_ == started_workers_;
}

void WorkerPool::Park() {
  runner_.Rest();
  MutexLock lock(park_mutex_);
  while (calls_ == 0) called_.Wait(lock);
  --calls_;
}

Work* WorkerPool::Take(Work* candidate) {
  if (candidate && !waiting_.load(std::memory_order_relaxed)) return candidate;
  for (int yields = 0;; ++yields) {
    if (yields >= kYieldsBeforePark || waiting_.load(std::memory_order_relaxed)) {
      SpinLockGuard lock(lock_);
      Work* work = candidate;
      if (!queue_.empty()) work = candidate ? queue_.Exchange(candidate) : queue_.Pop();
      if (work) {
        waiting_.store(!queue_.empty() || stopping_, std::memory_order_relaxed);
        return work;
      }
      if (stopping_) return nullptr;
      if (yields >= kYieldsBeforePark) ++sleepers_;
    }
    if (yields < kYieldsBeforePark) {
      std::this_thread::yield();
    } else {
      Park();
      yields = 0;
    }
  }
}

Worker WorkerPool::MakeWorker(int index) {
  Worker worker;
  worker.pool = this;
  runner_.EnterWorker(&worker, kind_, index);
  return worker;
}

void WorkerPool::RunWorker(int index) {
  if (kind_.property == FnProperty::kComm) RunPromptly();
  Worker worker = MakeWorker(index);
  std::unique_ptr<Stream> stream;
  try {
    if (options_.on_worker_start) options_.on_worker_start(kind_.ctx, kind_.property);
    if (options_.new_stream) stream = options_.new_stream(kind_.ctx, kind_.property);
  } catch (...) {
    worker.startup_error = std::current_exception();
  }
  worker.stream = stream.get();
  if (lane_) lane_->Attach(stream.get());
  Work* candidate = nullptr;
  while (Work* work = Take(candidate)) candidate = runner_.RunWork(work, worker);
}

}  // namespace mxtrain::engine
