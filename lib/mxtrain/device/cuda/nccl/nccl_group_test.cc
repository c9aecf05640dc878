// SPDX-License-Identifier: Apache-2.0
// A group of communicators over an NCCL whose functions are here: errors that come later, and
// sums that never end.
#include "mxtrain/device/cuda/internal/nccl_group.h"

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <string>

#include "mxtrain/base/error.h"

namespace mxtrain::cuda {
namespace {

using namespace std::chrono_literals;

constexpr int kMembers = 2;

// What was called, and what the functions answer.
struct Calls {
  std::atomic<int> groups = 0, groups_ended = 0, sums = 0, destroyed = 0, aborted = 0;
  std::atomic<ncclResult_t> sum = ncclSuccess;
  std::array<std::atomic<ncclResult_t>, kMembers> later{};  // of each member
};
Calls* calls = nullptr;

size_t IndexOf(ncclComm_t member) {
  return reinterpret_cast<uintptr_t>(member) - 1;
}

Nccl FakeNccl() {
  Nccl nccl;
  nccl.GetErrorString = [](ncclResult_t) { return "remote error"; };
  nccl.GetLastError = [](ncclComm_t) { return "NVLink 3 is down"; };
  nccl.CommInitAll = [](ncclComm_t* members, int count, const int*) {
    for (int i = 0; i < count; ++i)
      members[i] = reinterpret_cast<ncclComm_t>(static_cast<uintptr_t>(i) + 1);
    return ncclSuccess;
  };
  nccl.CommDestroy = [](ncclComm_t) { return ++calls->destroyed, ncclSuccess; };
  nccl.CommAbort = [](ncclComm_t) { return ++calls->aborted, ncclSuccess; };
  nccl.CommGetAsyncError = [](ncclComm_t member, ncclResult_t* error) {
    *error = calls->later[IndexOf(member)];
    return ncclSuccess;
  };
  nccl.GroupStart = [] { return ++calls->groups, ncclSuccess; };
  nccl.GroupEnd = [] { return --calls->groups, ++calls->groups_ended, ncclSuccess; };
  nccl.AllReduce = [](const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t,
                      cudaStream_t) -> ncclResult_t {
    ++calls->sums;
    CHECK(calls->groups == 1);
    return calls->sum;
  };
  return nccl;
}

void Sum(NcclGroup& group) {
  float a = 0, b = 0;
  const ArrayOnEach array{DType::kFloat32, {&a, &b}, 1};
  const cudaStream_t streams[kMembers] = {};
  group.AllReduce({&array, 1}, streams);
}

void AwaitAborts() {
  while (calls->aborted < kMembers) std::this_thread::sleep_for(1ms);
}

TEST_CASE("sums of a group that works") {
  Calls made;
  calls = &made;
  const Nccl nccl = FakeNccl();
  {
    NcclGroup group(nccl, {0, 1}, 1ms);
    for (int i = 0; i < 3; ++i) Sum(group);
    std::this_thread::sleep_for(5ms);
    group.End(1h, [] {});
  }
  CHECK(made.sums == 3 * kMembers);
  CHECK(made.groups == 0);
  CHECK(made.destroyed == kMembers);
  CHECK(made.aborted == 0);
}

TEST_CASE("arrays that travel together are one group; an empty one has no part in it") {
  Calls made;
  calls = &made;
  const Nccl nccl = FakeNccl();
  NcclGroup group(nccl, {0, 1}, 1h);
  float a[4] = {}, b[4] = {};
  const cudaStream_t streams[kMembers] = {};
  const ArrayOnEach arrays[] = {{DType::kFloat32, {a, b}, 3},
                                {DType::kBfloat16, {a, b}, 0},
                                {DType::kBfloat16, {a + 3, b + 3}, 2}};
  group.AllReduce(arrays, streams);
  CHECK(made.groups_ended == 1);
  CHECK(made.sums == 2 * kMembers);
  const ArrayOnEach of_bytes{DType::kUint8, {a, b}, 4};
  CHECK_THROWS_WITH_AS(group.AllReduce({&of_bytes, 1}, streams),
                       "GPUs sum only floating-point types, not uint8", Error);
  CHECK(made.groups_ended == 1);
}

TEST_CASE("an error that NCCL finds later aborts every member, and the next sum throws it") {
  Calls made;
  calls = &made;
  const Nccl nccl = FakeNccl();
  {
    NcclGroup group(nccl, {0, 1}, 1ms);
    Sum(group);
    made.later[1] = ncclRemoteError;
    AwaitAborts();  // by the watching thread: this one may be waiting for a GPU
    for (int i = 0; i < 2; ++i) {
      CHECK_THROWS_WITH_AS(Sum(group), "a sum over the GPUs failed: remote error: NVLink 3 is down",
                           Error);
    }
  }
  CHECK(made.sums == kMembers);
  CHECK(made.aborted == kMembers);
  CHECK(made.destroyed == 0);
}

TEST_CASE("an error is seen before the next sum, whatever the watching thread does") {
  Calls made;
  calls = &made;
  const Nccl nccl = FakeNccl();
  NcclGroup group(nccl, {0, 1}, 1h);
  made.later[0] = ncclSystemError;
  CHECK_THROWS_AS(Sum(group), Error);
  CHECK(made.sums == 0);
  AwaitAborts();
}

TEST_CASE("a sum that cannot be issued aborts every member") {
  Calls made;
  calls = &made;
  const Nccl nccl = FakeNccl();
  NcclGroup group(nccl, {0, 1}, 1h);
  made.sum = ncclInvalidArgument;
  CHECK_THROWS_WITH_AS(Sum(group), "ncclAllReduce failed: remote error: NVLink 3 is down", Error);
  CHECK(made.groups == 0);
  AwaitAborts();
  made.sum = ncclSuccess;
  CHECK_THROWS_AS(Sum(group), Error);
  CHECK(made.sums == 1);
}

// As NCCL's abort, which waits for the other processes of the machine.
TEST_CASE("nobody waits for an abort that does not return") {
  static std::atomic<bool> holds;
  static std::atomic<int> returned;
  holds = true;
  returned = 0;
  Calls made;
  calls = &made;
  Nccl nccl = FakeNccl();
  nccl.CommAbort = [](ncclComm_t) {
    ++calls->aborted;
    while (holds) std::this_thread::sleep_for(1ms);
    ++returned;
    return ncclSuccess;
  };
  const auto begin = std::chrono::steady_clock::now();
  {
    NcclGroup group(nccl, {0, 1}, 1ms);
    made.later[0] = ncclRemoteError;
    AwaitAborts();  // of both, neither of which returns
    for (int i = 0; i < 2; ++i) CHECK_THROWS_AS(Sum(group), Error);
    group.End(1h, [] {});
  }
  CHECK(std::chrono::steady_clock::now() - begin < 20s);
  CHECK(returned == 0);
  holds = false;
  while (returned < kMembers) std::this_thread::sleep_for(1ms);
}

TEST_CASE("the end does not wait for ever") {
  Calls made;
  calls = &made;
  const Nccl nccl = FakeNccl();
  NcclGroup group(nccl, {0, 1}, 1ms);
  Sum(group);
  group.End(10ms, AwaitAborts);  // a GPU whose sum ends only when it is aborted
  CHECK(made.aborted == kMembers);
}

}  // namespace
}  // namespace mxtrain::cuda
