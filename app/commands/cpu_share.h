#pragma once
// Whether other programs took the processor from this one.
#include <string>

namespace mxtrain::commands {

// Seconds of all threads of this process since they began: those in which they ran, and those in which they were ready to run and another thread
// had their processor. Threads that have ended are left out.
struct CpuTimes {
  double ran = 0, queued = 0;
};
CpuTimes ReadCpuTimes(const std::string& tasks = "/proc/self/task");  // zeros where the system does not tell

// The part of the processor time that this process could have used and was given, between two readings `seconds` apart on `cpus` processors. Its own
// threads in each other's way do not lower it: together they can use no more than the processors. 1 where nothing was wanted.
double GivenShare(const CpuTimes& before, const CpuTimes& after, double seconds, int cpus);

}  // namespace mxtrain::commands
