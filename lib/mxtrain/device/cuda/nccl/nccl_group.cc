// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/cuda/internal/nccl_group.h"

#include "mxtrain/base/error.h"
#include "mxtrain/base/thread.h"

namespace mxtrain::cuda {
namespace {

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

// Ignores errors: they are those of a failed device.
NcclGroup::~NcclGroup() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  watcher_.join();
  if (failure_) return;
  for (ncclComm_t member : members_) nccl_.CommDestroy(member);
}

void NcclGroup::AllReduce(std::span<const ArrayOnEach> arrays,
                          std::span<const cudaStream_t> streams) {
  const std::lock_guard lock(mutex_);
  Look();
  if (failure_) std::rethrow_exception(failure_);
  try {
    Issue(arrays, streams);
  } catch (...) {
    Fail(std::current_exception());
    throw;
  }
}

void NcclGroup::Issue(std::span<const ArrayOnEach> arrays,
                      std::span<const cudaStream_t> streams) const {
  for (const ArrayOnEach& array : arrays) NcclTypeOf(array.type);  // throws before the group opens
  nccl_.Check(nccl_.GroupStart(), "ncclGroupStart");
  ncclResult_t failed = ncclSuccess;
  for (const ArrayOnEach& array : arrays) {
    for (size_t i = 0; i < members_.size() && failed == ncclSuccess && array.n > 0; ++i) {
      failed = nccl_.AllReduce(array.data[i], array.data[i], static_cast<size_t>(array.n),
                               NcclTypeOf(array.type), ncclSum, members_[i], streams[i]);
    }
  }
  const ncclResult_t ended = nccl_.GroupEnd();  // also after a failure: the group is open
  nccl_.Check(failed, "ncclAllReduce");
  nccl_.Check(ended, "ncclGroupEnd");
}

void NcclGroup::End(std::chrono::milliseconds patience, const std::function<void()>& wait) {
  {
    const std::lock_guard lock(mutex_);
    deadline_ = std::chrono::steady_clock::now() + patience;
  }
  wait();
}

void NcclGroup::Watch() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    changed_.wait_for(lock, between_looks_);
    Look();
  }
}

void NcclGroup::Look() {
  if (failure_ || stopping_) return;
  try {
    for (ncclComm_t member : members_) {
      ncclResult_t found = ncclSuccess;
      nccl_.Check(nccl_.CommGetAsyncError(member, &found), "ncclCommGetAsyncError");
      nccl_.Check(found, "a sum over the GPUs");
    }
    if (deadline_ && std::chrono::steady_clock::now() > *deadline_)
      Throw(ErrorKind::kDevice, "a sum over the GPUs does not end");
  } catch (...) {
    Fail(std::current_exception());
  }
}

void NcclGroup::Fail(std::exception_ptr error) {
  failure_ = std::move(error);
  for (ncclComm_t member : members_) nccl_.CommAbort(member);
}

}  // namespace mxtrain::cuda
