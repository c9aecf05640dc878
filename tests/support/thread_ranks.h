// SPDX-License-Identifier: Apache-2.0
#pragma once
// Ranks as threads of one process: a transport between them that sums in the order of the ranks,
// and that can be as slow as a network and fail like one.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "mxtrain/device/process_group.h"

namespace mxtrain::test {

// What all ranks share.
class ThreadRanks {
 public:
  explicit ThreadRanks(int size);
  ~ThreadRanks();

  // For the lane of one rank's group.
  std::function<std::unique_ptr<Transport>()> Opener(int rank);
  // From now on the rank takes part in nothing, as if its machine were off.
  void Lose(int rank);
  // Whether a rank has called Abort, and with which code.
  int aborted_with() const;

  struct State;

 private:
  const std::shared_ptr<State> state_;
};

// Runs `body` on one thread per rank, each with a group of its own that is closed at the end.
// Rethrows the first rank's error, by rank.
void RunRanks(int size, const std::function<void(const std::shared_ptr<ProcessGroup>&)>& body,
              const ProcessGroup::Options& options = {});
// As RunRanks, for bodies that fail: what each rank's has thrown, "10: rank 1 ended ..." with the
// exit code of the error; "" if nothing.
std::vector<std::string> ErrorsOf(
    int size, const std::function<void(const std::shared_ptr<ProcessGroup>&)>& body,
    const ProcessGroup::Options& options = {});

// A link with latency and bandwidth, which carries one collective at a time, in front of another
// transport. It delays completion, not the sums.
struct Link {
  double latency_seconds = 0, bytes_per_second = 0;  // 0: no limit
};
std::unique_ptr<Transport> Delayed(std::unique_ptr<Transport> transport, const Link& link);

}  // namespace mxtrain::test
