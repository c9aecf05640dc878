// SPDX-License-Identifier: Apache-2.0
#pragma once
// The GPUs of all ranks in one order, which a communicator between them needs: those of rank 0,
// then those of rank 1, and so on.
#include <span>
#include <string>

#include "mxtrain/device/process_group.h"

namespace mxtrain {

struct RankGpus {
  int first = 0;  // place of this rank's first GPU
  int all = 0;    // of all ranks
};

// All ranks call it, each with the identities of its GPUs, which are one line. What precedes a
// comma is unique among all machines; the rest says where the GPU is: containers of one machine
// have different host names. `failure`: why this rank cannot take part, "" if it can; then all
// ranks throw kDevice, naming the first that cannot. Throws kUsage, on all ranks, if two of them
// have the same GPU.
MXTRAIN_API RankGpus OrderGpus(ProcessGroup& group, std::span<const std::string> identities,
                               const std::string& failure = "");

}  // namespace mxtrain
