// SPDX-License-Identifier: Apache-2.0
#pragma once
// An NCCL whose streams are fake (tests/support/fake_stream.h) and whose ranks may be threads or
// processes: its sums travel through shared memory (tests/support/shared_sums.h). As in NCCL with
// calls that do not block, a communicator is in progress until all ranks have come, and a group of
// calls is launched some time after its end: whoever goes on before that is too early.
#include "mxtrain/device/cuda/internal/nccl.h"
#include "mxtrain/device/cuda/internal/nccl_communicator.h"

namespace mxtrain::test {

// `host_address`: where the host finds what a rank sums; null: there.
cuda::Nccl FakeNccl(void* (*host_address)(void*) = nullptr);

// For cuda::NcclCommunicator; a handle is the fake stream.
extern const cuda::NcclStreams kFakeStreams;

struct FakeNcclCounts {
  int communicators = 0, destroyed = 0, aborted = 0;
};
FakeNcclCounts CountsOfFakeNccl();  // of this process

// What NCCL finds later on the communicator of this GPU, by its number among all.
void FailFakeNccl(int number, ncclResult_t error);

}  // namespace mxtrain::test
