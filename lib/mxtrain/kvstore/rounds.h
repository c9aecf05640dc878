// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a store of ranks that do not wait for each other (`dist_async`) has beside KVStore.
//
// They train in rounds. Within one, each pushes at its own pace; whoever holds a key updates it at
// once and answers with the new value, which may come by the array of the gradient. A rank that has
// pushed all it wants rests. Once all rest, nothing is in flight, and they may call collectives,
// until they begin the next round. Used by the thread that drives the run.
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "mxtrain/kvstore/kvstore.h"

namespace mxtrain {

class Rounds {
 public:
  virtual ~Rounds() = default;

  // As KVStore::SetUpdater, for the keys that this rank holds, which it calls on other threads, one
  // at a time. `updates`: of these keys by all ranks before. `rank`: whose gradients these are; of
  // one rank they are always received in the same arrays.
  using Updater =
      std::function<void(std::span<const KVStore::KeyUpdate>, int64_t updates, int rank)>;
  virtual void SetUpdater(Updater updater) = 0;

  // By all ranks, none of which is in a round: waits until all have the values of those that hold
  // them. The first round takes the values of the workers' arrays, after `updates` updates of each.
  virtual void Begin(int64_t updates) = 0;
  virtual bool begun() const = 0;
  // This rank pushes no more, and what it has pushed was answered: the workers' arrays were waited
  // for. `call`: the others should rest as well. May be repeated to call them.
  virtual void Rest(bool call) = 0;
  virtual bool called() const = 0;  // this rank should rest
  // Whether all ranks rest, or the group has failed, as the next collective tells: with kRankLost
  // if no rank has sent anything for as long as a collective may take.
  virtual bool AllRest() const = 0;
  // Once all rest: all workers get the values of those that hold them, and the round is over.
  virtual void End() = 0;
  // Of a rank that computes for long: the others learn that it is alive. Cheap.
  virtual void ShowLife() = 0;

  // How many updates had which staleness (staleness.h), from 0 to the bound, of the keys that this
  // rank holds, since the last call.
  virtual std::vector<int64_t> TakeStaleness() = 0;
};

}  // namespace mxtrain
