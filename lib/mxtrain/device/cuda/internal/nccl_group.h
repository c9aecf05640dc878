// SPDX-License-Identifier: Apache-2.0
#pragma once
// The NCCL communicators of the GPUs of this process, which fail together: what NCCL issued to the
// other GPUs would wait for the one that failed for ever, and with it everything that waits for
// those GPUs. Between several processes (ranks) the group of processes fails with them, and they
// with it: NCCL itself does not notice that a process on the same machine is gone.
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "mxtrain/device/communicator.h"
#include "mxtrain/device/cuda/internal/nccl.h"
#include "mxtrain/device/rank_gpus.h"

namespace mxtrain::cuda {

// For one thread, which issues; a thread of its own watches what was issued.
class NcclGroup {
 public:
  // Between two looks for errors that NCCL finds after its calls have returned.
  static constexpr std::chrono::milliseconds kBetweenLooks{100};

  // Of one process. Throws kDevice.
  NcclGroup(const Nccl& nccl, const std::vector<int>& ids,
            std::chrono::milliseconds between_looks = kBetweenLooks);
  // Of all ranks, which call it together; rank 0 chooses the id by which NCCL finds the others.
  // Throws kDevice, or kRankLost if they do not come within the timeout of the processes.
  NcclGroup(const Nccl& nccl, const std::vector<int>& ids, const RankGpus& gpus,
            std::shared_ptr<ProcessGroup> processes,
            std::chrono::milliseconds between_looks = kBetweenLooks);
  ~NcclGroup();
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  // Issues all-reduces in place, as one group of NCCL, on a stream per GPU. Throws kDevice if these
  // or earlier ones failed, kRankLost if another rank did.
  void AllReduce(std::span<const ArrayOnEach> arrays, std::span<const cudaStream_t> streams);

  // What was issued must end soon after the timeout of the processes; else the group fails. `ended`
  // says whether it has, to any thread. Without processes it may take as long as it takes.
  void Expect(std::function<bool()> ended);

  // The last call: wait() returns when the issued work is done, or aborted, which happens after
  // this time.
  void End(std::chrono::milliseconds patience, const std::function<void()>& wait);

 private:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;
  struct Sum {
    Time begin;
    std::function<bool()> ended;
  };

  void Join(const std::vector<int>& ids, const RankGpus& gpus);
  void Watch();
  // Those below: with mutex_ held.
  void Issue(std::unique_lock<std::mutex>* lock, std::span<const ArrayOnEach> arrays,
             std::span<const cudaStream_t> streams);
  bool Finalize(std::unique_lock<std::mutex>* lock);
  Clock::duration Timeout() const;
  bool InProgress() const;
  void Await(std::unique_lock<std::mutex>* lock);
  void Look();
  [[noreturn]] void ThrowLate() const;
  void Fail(std::exception_ptr error);
  void Abort();

  const Nccl& nccl_;
  const std::shared_ptr<ProcessGroup> processes_;  // null: one process
  const std::chrono::milliseconds between_looks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::vector<ncclComm_t> members_;  // none after a failure
  std::exception_ptr failure_;       // the members are aborted
  std::vector<std::future<void>> aborts_;
  std::deque<Sum> unfinished_;  // the oldest first
  std::optional<Time> deadline_;
  static constexpr const char* kSum = "a sum over the GPUs";
  const char* activity_ = kSum;  // for messages
  bool stopping_ = false;

  std::thread watcher_;
};

}  // namespace mxtrain::cuda
