// SPDX-License-Identifier: Apache-2.0
#pragma once
// The keys that one rank holds for all of them (`dist_async`): gradients of ranks arrive, this
// one's own too, update the values, and are answered with them.
//
// A parcel has an inbox for each rank. A gradient is received into it, the update reads it there,
// the new values replace it, and leave from there; then the next gradient may arrive. The values
// are arrays of their own, which no computation of this rank reads, so an update waits for a worker
// of the engine, but for no step.
//
// Who pushes key by key sends a gradient of a single key of a parcel, after a notice that names it,
// and has no other gradient of the parcel in flight. It has an inbox of its own, since the one of
// the whole parcel is always ready to receive.
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "mxtrain/base/mutex.h"
#include "mxtrain/device/process_group.h"
#include "mxtrain/kvstore/internal/parcels.h"
#include "mxtrain/kvstore/rounds.h"
#include "mxtrain/kvstore/staleness.h"

namespace mxtrain {

// Shared with functions of the engine and of the group's lane.
class HeldKeys : public std::enable_shared_from_this<HeldKeys> {
 public:
  // The parcels of all ranks, which tags number; this one holds its own. `most`: staleness.
  HeldKeys(Runtime& runtime, std::shared_ptr<ProcessGroup> group, std::vector<Parcel> parcels,
           const std::map<int, TensorSpec>& specs, int64_t most);
  // After construction: receives from now on.
  void Listen();
  // No update begins from now on, and nothing is received. Waits.
  void Close();

  const std::vector<Parcel>& parcels() const { return parcels_; }
  // Of this rank's keys; empty for others.
  NDArray Value(int key) const;

  void SetUpdater(Rounds::Updater updater);
  void StartAt(int64_t updates);
  // This rank's: what others send is counted when it arrives.
  void BeginRound();
  void Rest(bool call);
  bool called() const;
  bool AllRest() const;
  void ShowLife();
  // What this rank exchanges with who holds the parcel: its gradients or that of one of its keys,
  // by its place among them. `memory` holds them, and the values once `done` is called.
  struct Exchange {
    static constexpr int64_t kAllKeys = -1;
    size_t parcel = 0;
    int64_t part = kAllKeys;
    void* memory = nullptr;
    int64_t bytes = 0;
  };
  // By any thread.
  void Push(const Exchange& exchange, engine::Callback done);
  std::vector<int64_t> TakeStaleness();

 private:
  struct Memory {
    void* data = nullptr;
    int64_t bytes = 0;
  };
  struct Inbox {
    explicit Inbox(ParcelArrays of) : arrays(std::move(of)) {}
    ParcelArrays arrays;
    Memory whole;
    std::vector<Memory> parts;
  };
  // Of one rank.
  struct Inboxes {
    explicit Inboxes(Inbox all) : of_all(std::move(all)) {}
    Inbox of_all;
    std::optional<Inbox> of_parts;  // nothing: of a parcel with a single key
    // Of the lane: a part was received and is not answered; the one that comes then.
    bool busy = false;
    std::optional<int64_t> announced;
  };
  // A gradient, whole or a part, and which of its keys wait for their update.
  struct Arrival {
    int rank = 0;
    int64_t part = Exchange::kAllKeys;
    std::vector<size_t> left;
  };
  struct Held {
    size_t parcel = 0;
    std::vector<NDArray> values;         // by key of the parcel
    std::vector<Inboxes> inboxes;        // by rank
    std::vector<StalenessBound> bounds;  // by key of the parcel
    std::deque<Arrival> arrived;
  };
  struct OwnPush {
    void* memory;
    engine::Callback done;
  };
  // Between all ranks, with tag 0.
  struct Notice {
    int64_t rests_in = 0;  // a round; 0: a sign of life, or of a gradient
    int64_t calls = 0;
    int64_t parcel = -1, part = 0;  // a gradient of a part that follows; -1: none
  };

  int GradientTag(size_t parcel) const { return 1 + 2 * static_cast<int>(parcel); }
  int AnswerTag(size_t parcel) const { return 2 + 2 * static_cast<int>(parcel); }
  int PartTag(size_t parcel) const {
    return 1 + 2 * static_cast<int>(parcels_.size()) + static_cast<int>(parcel);
  }
  Held* HeldOf(size_t parcel);
  static Inbox& InboxOf(Held* held, int rank, int64_t part);
  static const Memory& MemoryOf(Held* held, int rank, int64_t part);
  void ReceiveGradient(Held* held, int rank);
  void ReceivePart(Held* held, int rank, int64_t part);
  void ReceiveNotice(int rank);
  void Notify(const Notice& notice);
  void SendNotice(int rank, const Notice& notice);
  void SendTo(int owner, const Exchange& exchange, engine::Callback done);
  void Arrive(Held* held, int rank, int64_t part);
  void Apply(Held* held) MXTRAIN_REQUIRES(mutex_);
  bool ApplyTo(Held* held, Arrival* arrival) MXTRAIN_REQUIRES(mutex_);
  void Answer(Held* held, int rank, int64_t part);
  void Send(Held* held, int rank, int64_t part);
  void PartSent(Held* held, int rank);
  void AnswerOwn(Held* held, int64_t part);
  void Rest(int rank, const Notice& notice);
  void Fail(const std::exception_ptr& error);

  Runtime& runtime_;
  const std::shared_ptr<ProcessGroup> group_;
  const std::vector<Parcel> parcels_;
  std::deque<Held> held_;  // its members are constant, or guarded by mutex_, or follow an inbox
  std::map<int, NDArray> values_;

  mutable Mutex mutex_;  // updates are pushed one after the other
  bool closed_ MXTRAIN_GUARDED_BY(mutex_) = false;
  Rounds::Updater updater_ MXTRAIN_GUARDED_BY(mutex_);
  int64_t round_ MXTRAIN_GUARDED_BY(mutex_) = 0;               // the first is 1
  std::vector<int64_t> rests_in_ MXTRAIN_GUARDED_BY(mutex_);   // by rank: the last round
  int64_t called_in_ MXTRAIN_GUARDED_BY(mutex_) = 0;           // the last round
  std::vector<int64_t> staleness_ MXTRAIN_GUARDED_BY(mutex_);  // updates of keys, by staleness
  std::vector<KVStore::KeyUpdate> updates_ MXTRAIN_GUARDED_BY(mutex_);  // of one call
  int64_t notified_ns_ = 0;  // of the thread that drives the run

  Mutex own_mutex_;  // may be taken with mutex_ held
  ConditionVariable sent_;
  int64_t sending_ MXTRAIN_GUARDED_BY(own_mutex_) = 0;  // answers in flight
  std::exception_ptr error_ MXTRAIN_GUARDED_BY(own_mutex_);
  std::map<size_t, OwnPush> own_ MXTRAIN_GUARDED_BY(own_mutex_);  // by parcel
};

}  // namespace mxtrain
