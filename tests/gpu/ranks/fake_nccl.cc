// SPDX-License-Identifier: Apache-2.0
#include "tests/gpu/ranks/fake_nccl.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "mxtrain/base/error.h"
#include "tests/support/fake_stream.h"
#include "tests/support/shared_sums.h"

namespace mxtrain::test {
namespace {

// Longer than a test waits for the end of its ranks.
constexpr std::chrono::seconds kLongestAbort{60};

void* (*to_host)(void*) = nullptr;
std::mutex mutex;
FakeNcclCounts counts;  // guarded by mutex
constexpr int kMostGpus = 8;
std::array<std::atomic<ncclResult_t>, kMostGpus> later{};  // by number among all GPUs

// For one thread at a time, as NCCL's communicators.
struct FakeComm {
  FakeComm(const char* name, int rank, int size)
      : number(static_cast<size_t>(rank)), sums(std::make_shared<SharedSums>(name, rank, size)) {}
  const size_t number;
  std::shared_ptr<SharedSums> sums;  // shared with launched kernels
  std::vector<std::function<void()>> unlaunched;
  bool group_ended = false;
  bool seen_in_progress = false;
  bool finalized = false;
};
thread_local int depth = 0;  // of groups
thread_local std::vector<FakeComm*> in_group;

FakeComm* Of(ncclComm_t comm) {
  return reinterpret_cast<FakeComm*>(comm);
}

ncclResult_t GetUniqueId(ncclUniqueId* id) {
  const std::string name = SharedSums::NewName();
  std::memcpy(id->internal, name.c_str(), name.size() + 1);
  return ncclSuccess;
}

ncclResult_t CommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank,
                                ncclConfig_t* config) {
  int device = -1;
  if (config->blocking != 0 || depth != 1 || cudaGetDevice(&device) != cudaSuccess)
    return ncclInvalidUsage;
  *comm = reinterpret_cast<ncclComm_t>(new FakeComm(id.internal, rank, size));
  const std::lock_guard lock(mutex);
  ++counts.communicators;
  return ncclInProgress;
}

ncclResult_t GroupStart() {
  return ++depth, ncclSuccess;
}

ncclResult_t GroupEnd() {
  if (--depth > 0) return ncclSuccess;
  for (FakeComm* comm : in_group) {
    comm->group_ended = true;
    comm->seen_in_progress = false;
  }
  in_group.clear();
  return ncclInProgress;
}

ncclResult_t AllReduce(const void* from, void* data, size_t n, ncclDataType_t type, ncclRedOp_t op,
                       ncclComm_t comm, cudaStream_t stream) {
  const bool known = type == ncclFloat32 || type == ncclBfloat16;
  if (from != data || op != ncclSum || depth != 1 || !known) return ncclInvalidArgument;
  FakeComm* const of = Of(comm);
  if (of->group_ended) return ncclInvalidUsage;  // the group before is still in progress
  of->unlaunched.emplace_back(
      [sums = of->sums, n, type, stream, host = to_host ? to_host(data) : data] {
        reinterpret_cast<FakeStream*>(stream)->Launch([=] {
          sums->AllReduce(host, static_cast<int64_t>(n),
                          type == ncclFloat32 ? DType::kFloat32 : DType::kBfloat16);
        });
      });
  in_group.push_back(of);
  return ncclInProgress;
}

// A group is launched at the second look after its end.
ncclResult_t CommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  FakeComm* const of = Of(comm);
  *error = later.at(of->number);
  if (of->sums->mismatch()) *error = ncclInvalidUsage;
  if (*error != ncclSuccess) return ncclSuccess;
  if (of->finalized) {
    if (!of->sums->finished()) *error = ncclInProgress;
    return ncclSuccess;
  }
  if (!of->sums->complete()) {
    *error = ncclInProgress;
  } else if (of->group_ended) {
    if (!of->seen_in_progress) {
      of->seen_in_progress = true;
      *error = ncclInProgress;
      return ncclSuccess;
    }
    for (const auto& launch : of->unlaunched) launch();
    of->unlaunched.clear();
    of->group_ended = false;
  }
  return ncclSuccess;
}

// In progress until all ranks have come.
ncclResult_t CommFinalize(ncclComm_t comm) {
  if (depth != 1) return ncclInvalidUsage;  // one member would wait for the other
  Of(comm)->finalized = true;
  Of(comm)->sums->Finish();
  return ncclInProgress;
}

ncclResult_t CommDestroy(ncclComm_t comm) {
  if (!Of(comm)->finalized || !Of(comm)->sums->finished()) return ncclInvalidUsage;
  Of(comm)->sums->Leave({});
  delete Of(comm);
  const std::lock_guard lock(mutex);
  ++counts.destroyed;
  return ncclSuccess;
}

// Its sums end at once, but it returns when all members of the machine are aborted, or gone, as
// NCCL's does.
ncclResult_t CommAbort(ncclComm_t comm) {
  const std::unique_ptr<FakeComm> of(Of(comm));
  {
    const std::lock_guard lock(mutex);
    ++counts.aborted;
  }
  of->sums->Abort();
  of->sums->Leave(kLongestAbort);
  return ncclSuccess;
}

}  // namespace

cuda::Nccl FakeNccl(void* (*host_address)(void*)) {
  to_host = host_address;
  for (auto& error : later) error = ncclSuccess;
  {
    const std::lock_guard lock(mutex);
    counts = {};
  }
  cuda::Nccl nccl;
  nccl.GetErrorString = [](ncclResult_t error) {
    return error == ncclRemoteError ? "remote error" : "invalid usage";
  };
  nccl.GetLastError = [](ncclComm_t) { return ""; };
  nccl.GetUniqueId = GetUniqueId;
  nccl.CommInitRankConfig = CommInitRankConfig;
  nccl.CommFinalize = CommFinalize;
  nccl.CommDestroy = CommDestroy;
  nccl.CommAbort = CommAbort;
  nccl.CommGetAsyncError = CommGetAsyncError;
  nccl.GroupStart = GroupStart;
  nccl.GroupEnd = GroupEnd;
  nccl.AllReduce = AllReduce;
  return nccl;
}

const cuda::NcclStreams kFakeStreams{
    [](Context) -> std::unique_ptr<Stream> { return std::make_unique<FakeStream>(1, true); },
    [](Stream& stream) {
      return reinterpret_cast<cudaStream_t>(static_cast<FakeStream*>(&stream));
    },
    [](Stream& stream) -> std::function<bool()> {
      const auto come = std::make_shared<std::atomic<bool>>(false);
      static_cast<FakeStream&>(stream).Launch([come] { *come = true; });
      return [come] { return come->load(); };
    }};

FakeNcclCounts CountsOfFakeNccl() {
  const std::lock_guard lock(mutex);
  return counts;
}

void FailFakeNccl(int number, ncclResult_t error) {
  later.at(static_cast<size_t>(number)) = error;
}

}  // namespace mxtrain::test
