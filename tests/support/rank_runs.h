// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs of the trainer (training_run.h) by ranks that are threads (thread_ranks.h), each with a
// process of its own.
#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "tests/support/thread_ranks.h"
#include "tests/support/training_run.h"

namespace mxtrain::test {

using Group = std::shared_ptr<ProcessGroup>;

inline RunSpec OfGroup(RunSpec spec, const Group& group) {
  spec.group = group;
  return spec;
}

// Rank 0's outcome; the epochs of the others must be the same. `of_rank`: what a rank makes of the
// spec.
inline Outcome RunAsRanks(int size, const TempDir& data, const RunSpec& spec,
                          const std::function<RunSpec(RunSpec, const Group&)>& of_rank = OfGroup) {
  const TempDir folder;
  Outcome first;
  std::mutex mutex;
  std::vector<std::vector<EpochEvent>> others;
  RunRanks(size, [&](const Group& group) {
    RunSpec own = of_rank(spec, group);
    own.folder = folder.path("checkpoints");
    Process process(data, own);
    Log log;
    CHECK(process.trainer->Run(log).end == RunEnd::kComplete);
    CHECK((log.saves > 0) == group->first());
    group->Barrier();  // the last save is complete
    const std::lock_guard lock(mutex);
    if (group->first()) {
      first = OutcomeOf(process, own, log);
    } else {
      others.push_back(log.epochs);
    }
  });
  for (const std::vector<EpochEvent>& epochs : others) {
    REQUIRE(epochs.size() == first.epochs.size());
    for (size_t e = 0; e < epochs.size(); ++e) CheckSameEpoch(epochs[e], first.epochs[e]);
  }
  return first;
}

}  // namespace mxtrain::test
