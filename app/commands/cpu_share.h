// SPDX-License-Identifier: Apache-2.0
#pragma once
// Measures how much processor time other programs took from this one.
#include <string>

namespace mxtrain::commands {

// Seconds of all threads of this process since they started: running, and ready to run but waiting
// for a processor. Threads that have ended are not counted.
struct CpuTimes {
  double ran = 0, queued = 0;
};
// Zeros if the system does not provide them.
CpuTimes ReadCpuTimes(const std::string& tasks = "/proc/self/task");

// The fraction of usable processor time that this process got between two readings `seconds` apart
// on `cpus` processors. Contention among its own threads does not lower it, since together they
// cannot use more than the processors. 1 if it wanted none.
double GivenShare(const CpuTimes& before, const CpuTimes& after, double seconds, int cpus);

}  // namespace mxtrain::commands
