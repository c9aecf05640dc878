// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/cuda/internal/nccl_group.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "mxtrain/base/error.h"
#include "mxtrain/base/thread.h"
#include "mxtrain/device/cuda/internal/device_scope.h"

namespace mxtrain::cuda {
namespace {

// Between two looks at a call that NCCL has not completed yet. Most take some microseconds, and a
// step makes many; one that connects takes long.
constexpr std::chrono::microseconds kFirstPolls{20}, kLaterPolls{1000};
constexpr std::chrono::milliseconds kSoon{5};
// Than collectives of the processes, which name the rank that is lost, so they should end first.
constexpr double kLonger = 1.1;
// Usually an abort is short. One that waits for other ranks is left to the end of the process.
constexpr std::chrono::seconds kAbortPatience{2};

ncclDataType_t NcclTypeOf(DType type) {
  switch (type) {
    case DType::kFloat32:
      return ncclFloat32;
    case DType::kFloat64:
      return ncclFloat64;
    case DType::kFloat16:
      return ncclFloat16;
    case DType::kBfloat16:
      return ncclBfloat16;
    default:
      Throw(ErrorKind::kDevice, "GPUs sum only floating-point types, not {}", NameOf(type));
  }
}

// Calls that do not block return before they are complete.
ncclResult_t Accepted(ncclResult_t status) {
  return status == ncclInProgress ? ncclSuccess : status;
}

}  // namespace

NcclGroup::NcclGroup(const Nccl& nccl, const std::vector<int>& ids,
                     std::chrono::milliseconds between_looks)
    : nccl_(nccl), between_looks_(between_looks), members_(ids.size()) {
  nccl_.Check(nccl_.CommInitAll(members_.data(), static_cast<int>(ids.size()), ids.data()),
              "ncclCommInitAll");
  try {
    watcher_ = StartThread([this] { Watch(); });
  } catch (...) {
    for (ncclComm_t member : members_) nccl_.CommDestroy(member);
    throw;
  }
}

NcclGroup::NcclGroup(const Nccl& nccl, const std::vector<int>& ids, const RankGpus& gpus,
                     std::shared_ptr<ProcessGroup> processes,
                     std::chrono::milliseconds between_looks)
    : nccl_(nccl),
      processes_(std::move(processes)),
      between_looks_(between_looks),
      members_(ids.size()) {
  try {
    Join(ids, gpus);
    watcher_ = StartThread([this] { Watch(); });
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!failure_) Fail(std::current_exception());
    throw;
  }
}

// NCCL's calls do not block, so that a rank that never comes is noticed.
void NcclGroup::Join(const std::vector<int>& ids, const RankGpus& gpus) {
  ncclUniqueId id{};
  ncclResult_t made = ncclSuccess;
  std::string text;
  if (processes_->first()) {
    made = nccl_.GetUniqueId(&id);
    if (made == ncclSuccess) text.assign(id.internal, sizeof id.internal);
  }
  text = processes_->BroadcastText(text);
  nccl_.Check(made, "ncclGetUniqueId");
  if (text.size() != sizeof id.internal)
    Throw(ErrorKind::kDevice, "rank 0 could not begin with NCCL");
  std::memcpy(id.internal, text.data(), text.size());

  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  std::unique_lock lock(mutex_);
  activity_ = "connecting the GPUs";
  nccl_.Check(nccl_.GroupStart(), "ncclGroupStart");
  ncclResult_t failed = ncclSuccess;
  for (size_t i = 0; i < ids.size() && failed == ncclSuccess; ++i) {
    const DeviceScope scope(ids[i]);
    failed = Accepted(nccl_.CommInitRankConfig(&members_[i], gpus.all, id,
                                               gpus.first + static_cast<int>(i), &config));
  }
  const ncclResult_t ended = Accepted(nccl_.GroupEnd());  // also after a failure: the group is open
  nccl_.Check(failed, "ncclCommInitRankConfig");
  nccl_.Check(ended, "ncclGroupEnd");
  Await(&lock);
  activity_ = kSum;
}

// Ignores errors: they are those of a failed device.
NcclGroup::~NcclGroup() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  watcher_.join();
  std::unique_lock lock(mutex_);
  if (!failure_ && (!processes_ || Finalize(&lock))) {
    for (ncclComm_t member : members_) nccl_.CommDestroy(member);
  }
  const Time end = Clock::now() + kAbortPatience;
  for (const std::future<void>& abort : aborts_) abort.wait_until(end);
}

// NCCL waits here for the other ranks, the first of which may still save.
bool NcclGroup::Finalize(std::unique_lock<std::mutex>* lock) {
  activity_ = "disconnecting the GPUs";
  try {
    nccl_.Check(nccl_.GroupStart(), "ncclGroupStart");
    ncclResult_t failed = ncclSuccess;
    for (ncclComm_t member : members_) {
      if (failed == ncclSuccess) failed = Accepted(nccl_.CommFinalize(member));
    }
    const ncclResult_t ended = Accepted(nccl_.GroupEnd());
    nccl_.Check(failed, "ncclCommFinalize");
    nccl_.Check(ended, "ncclGroupEnd");
    Await(lock);
    return true;
  } catch (const Error&) {
    if (!failure_) Fail(std::current_exception());
    return false;
  }
}

void NcclGroup::AllReduce(std::span<const ArrayOnEach> arrays,
                          std::span<const cudaStream_t> streams) {
  std::unique_lock lock(mutex_);
  Look();
  if (failure_) std::rethrow_exception(failure_);
  try {
    Issue(&lock, arrays, streams);
  } catch (...) {
    if (!failure_) Fail(std::current_exception());
    throw;
  }
}

void NcclGroup::Issue(std::unique_lock<std::mutex>* lock, std::span<const ArrayOnEach> arrays,
                      std::span<const cudaStream_t> streams) {
  for (const ArrayOnEach& array : arrays) NcclTypeOf(array.type);  // throws before the group opens
  nccl_.Check(nccl_.GroupStart(), "ncclGroupStart");
  ncclResult_t failed = ncclSuccess;
  for (const ArrayOnEach& array : arrays) {
    for (size_t i = 0; i < members_.size() && failed == ncclSuccess && array.n > 0; ++i) {
      failed = Accepted(nccl_.AllReduce(array.data[i], array.data[i], static_cast<size_t>(array.n),
                                        NcclTypeOf(array.type), ncclSum, members_[i], streams[i]));
    }
  }
  const ncclResult_t ended = Accepted(nccl_.GroupEnd());  // also after a failure: the group is open
  nccl_.Check(failed, "ncclAllReduce");
  nccl_.Check(ended, "ncclGroupEnd");
  if (processes_) Await(lock);
}

void NcclGroup::Expect(std::function<bool()> ended) {
  if (!processes_) return;
  const std::lock_guard lock(mutex_);
  unfinished_.push_back({Clock::now(), std::move(ended)});
}

void NcclGroup::End(std::chrono::milliseconds patience, const std::function<void()>& wait) {
  {
    const std::lock_guard lock(mutex_);
    deadline_ = Clock::now() + patience;
  }
  wait();
  const std::lock_guard lock(mutex_);
  deadline_.reset();  // other ranks may end later
}

void NcclGroup::Watch() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    changed_.wait_for(lock, between_looks_);
    if (!stopping_) Look();
  }
}

NcclGroup::Clock::duration NcclGroup::Timeout() const {
  const std::chrono::duration<double> timeout(kLonger * processes_->timeout_seconds());
  return std::chrono::duration_cast<Clock::duration>(timeout);
}

bool NcclGroup::InProgress() const {
  return std::any_of(members_.begin(), members_.end(), [this](ncclComm_t member) {
    ncclResult_t found = ncclSuccess;
    nccl_.Check(nccl_.CommGetAsyncError(member, &found), "ncclCommGetAsyncError");
    return found == ncclInProgress;
  });
}

// What NCCL has begun and not completed. The watching thread may look meanwhile.
void NcclGroup::Await(std::unique_lock<std::mutex>* lock) {
  const Time begin = Clock::now(), deadline = begin + Timeout();
  while (true) {
    Look();
    if (failure_) std::rethrow_exception(failure_);
    if (!InProgress()) return;
    if (Clock::now() > deadline) ThrowLate();
    changed_.wait_for(*lock, Clock::now() < begin + kSoon ? kFirstPolls : kLaterPolls);
  }
}

void NcclGroup::ThrowLate() const {
  Throw(kRankLost,
        "{} of all ranks has taken {:.0f} s (train.kvstore.timeout): one of them ended or does not "
        "answer",
        activity_, std::chrono::duration<double>(Timeout()).count());
}

void NcclGroup::Look() {
  if (failure_) return;
  try {
    for (ncclComm_t member : members_) {
      ncclResult_t found = ncclSuccess;
      nccl_.Check(nccl_.CommGetAsyncError(member, &found), "ncclCommGetAsyncError");
      const bool remote = processes_ && found == ncclRemoteError;
      nccl_.Check(Accepted(found), activity_, remote ? kRankLost : ErrorKind::kDevice);
    }
    if (processes_ && processes_->failed())
      Throw(kRankLost, "{} of all ranks was ended: not all of them take part", activity_);
    while (!unfinished_.empty() && unfinished_.front().ended()) unfinished_.pop_front();
    if (!unfinished_.empty() && Clock::now() > unfinished_.front().begin + Timeout()) ThrowLate();
    if (deadline_ && Clock::now() > *deadline_)
      Throw(ErrorKind::kDevice, "a sum over the GPUs does not end");
  } catch (...) {
    Fail(std::current_exception());
  }
}

// The processes first: once the sums are aborted, what they should have given is garbage, which no
// rank may save. In the destructor all sums are done, so what fails there spoils no run.
void NcclGroup::Fail(std::exception_ptr error) {
  failure_ = std::move(error);
  if (processes_ && !stopping_) processes_->Fail(WhatOf(failure_));
  Abort();
}

// Of each member in a thread of its own: an abort may wait for those of the others, also in other
// processes of the machine, and nobody may wait for it.
void NcclGroup::Abort() {
  for (ncclComm_t member : std::exchange(members_, {})) {
    if (!member) continue;
    const auto abort = std::make_shared<std::packaged_task<void()>>(
        [call = nccl_.CommAbort, member] { call(member); });
    aborts_.push_back(abort->get_future());
    try {
      StartThread([abort] { (*abort)(); }).detach();
    } catch (const Error&) {
      (*abort)();
    }
  }
}

}  // namespace mxtrain::cuda
