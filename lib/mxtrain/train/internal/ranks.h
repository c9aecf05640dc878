// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the processes of a distributed run agree on: when it stops and saves, its scores, the
// auxiliary states that evaluation uses. All ranks make the same calls in the same order. A run of
// one process is its only rank: nothing waits. Used by the training thread.
#include <array>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "mxtrain/base/mutex.h"
#include "mxtrain/device/process_group.h"
#include "mxtrain/train/evaluation.h"

namespace mxtrain {

// What a rank wants because of its own signals, clock and losses, or what was decided.
struct Wishes {
  bool stop = false, save = false, out_of_time = false;
  bool diverged = false;  // wants the end, since a loss is not finite

  Wishes& operator|=(const Wishes& other) {
    stop |= other.stop;
    save |= other.save;
    out_of_time |= other.out_of_time;
    diverged |= other.diverged;
    return *this;
  }
  bool any() const { return stop || save || out_of_time || diverged; }
};

class Ranks {
 public:
  explicit Ranks(std::shared_ptr<ProcessGroup> group) : group_(std::move(group)) {}
  ~Ranks();

  int size() const { return group_ ? group_->size() : 1; }
  bool several() const { return size() > 1; }
  bool first() const { return !group_ || group_->first(); }

  // Anyone's wish is granted. Waits for all ranks.
  Wishes Agree(const Wishes& own);
  // The same without the wait: after a step was pushed. Returns what was wished after the step
  // before; call Agree to learn the last wishes.
  Wishes AgreeLater(const Wishes& own);

  // The values of all ranks' examples, equal on all ranks. Afterwards rank 0 holds the merged
  // scores, and the others none, so further examples may be added and merged again.
  NamedValues Merge(EpochScores* scores) const;
  // Replaces arrays by rank 0's.
  void Share(const std::map<std::string, NDArray>& arrays) const;

  // For how long each rank had begun collectives that others had not, since StartWaiting: the
  // slowest rank waits least. Waits for all ranks; empty for one process.
  // AddWaiting: a wait that was none for a collective.
  void StartWaiting();
  void AddWaiting(double seconds) { other_waiting_ += seconds; }
  std::vector<double> WaitingSeconds() const;

  // Element by element, over the ranks. Waits for all ranks.
  std::vector<int64_t> Sum(std::vector<int64_t> own) const;
  // The first text that is not empty, by rank. Waits for all ranks.
  std::string FirstText(const std::string& own) const;

  // This rank ends because of an error: what was pushed no longer waits for other ranks.
  void Fail(const std::exception_ptr& error) const;

 private:
  // Wishes on their way; written by the group's lane until `arrived`.
  struct Vote {
    std::array<int32_t, 4> flags{};
    Mutex mutex;
    ConditionVariable changed;
    bool arrived MXTRAIN_GUARDED_BY(mutex) = false;
    std::exception_ptr error MXTRAIN_GUARDED_BY(mutex);
  };
  void Send(const Wishes& own);
  Wishes Receive();

  const std::shared_ptr<ProcessGroup> group_;  // null: one process
  std::shared_ptr<Vote> vote_;                 // sent and not received
  double waited_before_ = 0, other_waiting_ = 0;
};

// The rank that the others wait for, during this share of the time: at least a tenth.
struct SlowRank {
  int rank = -1;  // none
  double share = 0;
};
MXTRAIN_API SlowRank FindSlowRank(std::vector<double> waiting, double seconds);

}  // namespace mxtrain
