// SPDX-License-Identifier: Apache-2.0
#pragma once
// What operators share besides arrays: the state of random numbers, and temporary space. Owned by
// the Runtime. Thread-safe.
//
// Random numbers are counter-based: they depend on the seed, the drawing node's name and the step.
// So the state is a seed and a count of steps, the same for all devices: no result depends on where
// an operator runs.
//
// Temporary space: a device has a pool of blocks. An operation takes one while it runs, and the
// next one gets the same. A block belongs to one stream, whose order separates the operations that
// use it; without streams, an operation has ended before it gives its block back. So two operations
// never share a block at the same time, and a pool has as many blocks as operations of its device
// ran at once: usually one. Each keeps the largest size that was requested of it; idle ones shrink
// only when memory of their device is exhausted, and by ReleaseIdle.
//
// Spaces are taken by running operations, and not through variables of the engine that a push would
// name: those would order operations that have nothing in common, and pass the error of one on to
// the others (docs/decisions/0060-space-is-taken-by-running-operations.md).
#include <map>
#include <memory>
#include <vector>

#include "mxtrain/base/mutex.h"
#include "mxtrain/resource/random_state.h"
#include "mxtrain/resource/temp_space.h"

namespace mxtrain {

struct ResourceStats {
  struct Space {
    int64_t bytes = 0;   // now
    uint64_t taken = 0;  // times
  };
  std::vector<Space> spaces;  // temporary space, by block
  int64_t bytes = 0;          // of all blocks
  int64_t peak = 0;           // of `bytes`
  uint64_t taken = 0;         // times a block was taken
  uint64_t growths = 0;       // times a block was allocated
  uint64_t random_runs = 0;   // runs of operators that request random numbers
};

class MXTRAIN_API ResourceManager {
 public:
  // `storage` must outlive the manager, and the manager everything that was pushed.
  ResourceManager(Storage& storage, uint64_t seed);

  // Restarts the random numbers of operators: whatever is pushed from now on draws as in a new
  // Runtime with this seed. Calls on arrays and executors begin at their first step. Data pipelines
  // do not: shuffling and augmentation have seeds of their own, given when they are created.
  void Seed(uint64_t seed);
  uint64_t seed() const;
  // The seed and the calls on arrays that drew so far. Executors count steps of their own
  // (RandomSteps), which Restore does not change.
  RandomState State() const;
  void Restore(const RandomState& state);
  // For a call on arrays: a new step, in call order.
  RandomState NextCall();

  // An idle space of the pool, or a new one. Called where the space will be used: in a function of
  // the engine, with its context.
  SpaceLease TakeSpace(RunContext ctx);
  // Returns the blocks of the device's idle spaces to the storage, when their streams are done with
  // them. (Storage::ReleaseCache then returns them to the device.) Keeps a block whose stream has
  // failed; the failure is reported to those who wait for the work.
  void ReleaseIdle(Context ctx);

  // Of an operator that requests random numbers.
  void CountRandomRun(Context ctx);
  // All zero for a device that was never used.
  ResourceStats GetStats(Context ctx) const;
  std::vector<Context> devices() const;  // that were used

 private:
  friend class RandomSteps;
  friend class TempSpace;
  friend struct GiveBack;
  struct Seeding {
    uint64_t seed = 0;
    uint64_t number = 0;  // calls of Seed
  };
  struct Pooled {
    std::unique_ptr<TempSpace> space;
    bool taken = false;
    ResourceStats::Space stats;
  };
  struct Device {
    std::vector<Pooled> pool;
    int64_t bytes = 0, peak = 0;
    uint64_t growths = 0, random_runs = 0;
  };

  Seeding seeding() const;
  Pooled& Find(const TempSpace& space) MXTRAIN_REQUIRES(mutex_);
  void Return(const TempSpace& space);
  void CountSize(const TempSpace& space, int64_t bytes);

  Storage& storage_;
  mutable Mutex mutex_;
  Seeding seeding_ MXTRAIN_GUARDED_BY(mutex_);
  uint64_t calls_ MXTRAIN_GUARDED_BY(mutex_) = 0;
  std::map<Context, Device> devices_ MXTRAIN_GUARDED_BY(mutex_);
};

// The steps of one executor. One thread at a time may use it.
class MXTRAIN_API RandomSteps {
 public:
  explicit RandomSteps(const ResourceManager& manager) : manager_(manager) {}

  // Of the next forward pass: a training pass is a new step.
  const RandomState& Next(bool is_train);
  // Of the last forward pass; its backward pass repeats the draws.
  const RandomState& last() const { return state_; }
  uint64_t step() const;  // training forward passes since the last Seed
  void set_step(uint64_t step);

 private:
  const ResourceManager& manager_;
  RandomState state_;
  uint64_t seeding_ = 0;  // ResourceManager::Seeding::number of `state_`
};

}  // namespace mxtrain
