// SPDX-License-Identifier: Apache-2.0
#pragma once
// How many CPUs this process may use: those of its affinity mask, limited by the quota of its
// control group (version 1 or 2). A container with a quota of two CPUs on a machine of 64 must not
// start 64 threads.
#include <string>

#include "mxtrain/base/macros.h"

namespace mxtrain {

// This process's share of them, if ShareCpus has been called.
MXTRAIN_API int UsableCpuCount();

// So many processes of a run have this machine's CPUs together. `own_mask`: each has an affinity
// mask of its own, and they share the quota alone. Before anything asks for the count.
MXTRAIN_API void ShareCpus(int processes, bool own_mask);

// The quota in CPUs, rounded down and at least 1; 0 if there is none. `self`: the text of
// /proc/self/cgroup. `root`: the folder where the groups are mounted (/sys/fs/cgroup).
MXTRAIN_API int CgroupCpuQuota(const std::string& self, const std::string& root);

}  // namespace mxtrain
