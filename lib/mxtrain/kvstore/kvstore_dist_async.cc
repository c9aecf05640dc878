// SPDX-License-Identifier: Apache-2.0
// KVStore `dist_async`: each key is held by one rank, which updates it by every gradient that
// arrives, and answers with the new value. What a rank computes with is a copy of its own, which
// changes by nothing but the answers to its own gradients. Keys travel in parcels; one that is
// pulled, or pushed again, before the rest of its parcel was pushed travels alone.
#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

#include "mxtrain/base/error.h"
#include "mxtrain/kvstore/collectives.h"
#include "mxtrain/kvstore/internal/held_keys.h"
#include "mxtrain/kvstore/internal/process_store.h"
#include "mxtrain/kvstore/internal/worker_sums.h"

namespace mxtrain {
namespace {

constexpr int64_t kDefaultSteps = 4;  // of the others while a rank makes one
constexpr size_t kMostParcels = 10'000;
constexpr std::chrono::milliseconds kPauseOfWait{1};

int64_t BoundOf(const DistOptions& options, int ranks) {
  if (options.wire != DistOptions::Wire::kFloat32 || options.shard_states)
    Throw(ErrorKind::kConfig,
          "KVStore 'dist_async': gradients are neither rounded nor compressed, and each process "
          "has the states of a part anyway: use dist_sync, or remove wire, compression and "
          "shard_states");
  if (options.staleness == 0) return kDefaultSteps * (ranks - 1);
  if (options.staleness >= ranks - 1) return options.staleness;
  Throw(ErrorKind::kConfig,
        "train.kvstore.staleness is {}, but of {} processes that read a value at the same time, "
        "the last has a staleness of {}; set at least that",
        options.staleness, ranks, ranks - 1);
}

// While one function waits for an answer, others make the answers.
void RequireThreads(Runtime& runtime) {
  const NDArray probe = NDArray::Zeros(runtime, TShape({1}));
  const engine::VarHandle var = probe.var();
  std::thread::id runs_on;
  runtime.engine().PushSync([&runs_on](RunContext) { runs_on = std::this_thread::get_id(); }, {},
                            {&var, 1}, {.name = "probe"});
  probe.WaitToRead();
  if (runs_on != std::this_thread::get_id()) return;
  Throw(ErrorKind::kUsage,
        "KVStore 'dist_async' needs the engine 'threaded': with 'naive', processes would wait for "
        "each other without end; use 'threaded', or dist_sync");
}

class KVStoreDistAsync final : public ProcessStore, public Rounds {
 public:
  KVStoreDistAsync(Runtime& runtime, std::shared_ptr<ProcessGroup> group,
                   const DistOptions& options)
      : ProcessStore(runtime),
        group_(std::move(group)),
        bound_(BoundOf(options, group_->size())),
        worker_sums_(runtime) {
    RequireThreads(runtime);
  }
  ~KVStoreDistAsync() override {
    if (held_) held_->Close();
  }

  void Init(int key, std::span<const NDArray> values, bool share) override {
    if (held_) Throw(ErrorKind::kBug, "key {} was initialised after a sum", key);
    Keep(key, share ? values : values.first(1), share);
    specs_.emplace(key, values[0].spec());
    Broadcast(group_, Copies(key)[0]);
    for (NDArray other : values.subspan(1)) other.CopyFrom(Copies(key)[0]);
  }

  // Of a key that this rank holds: what it holds.
  std::span<const NDArray> Values(int key) const override {
    const auto held = held_values_.find(key);
    return held == held_values_.end() ? Copies(key).first(1) : std::span(&held->second, 1);
  }

  std::span<const NDArray> Sum(int key, std::span<const NDArray> values, int priority) override {
    Plan();
    Complete(key);
    Place& place = places_.at(key);
    const NDArray& own = worker_sums_.Sum(key, values, priority)[0];
    if (place.alone) {
      place.travels = own;
    } else {
      place.travels.CopyFrom(own, priority);
    }
    return {&place.travels, 1};
  }

  void Update(std::span<const KeySums> keys) override {
    if (!begun_) {
      Begin(0);
      round_of_pushes_ = true;
    }
    for (const KeySums& key : keys) {
      Place& place = places_.at(key.key);
      place.waits = true;
      place.priority = key.priority;
    }
    for (size_t p = 0; p < outgoing_.size(); ++p) {
      const Parcel& parcel = held_->parcels()[p];
      const bool complete = std::all_of(parcel.keys.begin(), parcel.keys.end(),
                                        [this](int key) { return places_.at(key).waits; });
      if (!complete) continue;
      const Place& last = places_.at(parcel.keys.back());
      Exchange(p, HeldKeys::Exchange::kAllKeys, outgoing_[p].empty() ? last.travels : outgoing_[p],
               last.priority);
      for (int key : parcel.keys) TakeValue(key);
    }
  }

  void Pull(int key, std::span<const NDArray> out, int priority) override {
    Complete(key);
    for (NDArray target : out) target.CopyFrom(Copies(key)[0], priority);
  }

  void SetUpdater(KVStore::Updater updater) override {
    SetUpdater(Rounds::Updater([updater = std::move(updater)](std::span<const KeyUpdate> keys,
                                                              int64_t, int) { updater(keys); }));
  }
  std::optional<int> OwnerOf(int key) override {
    Plan();
    if (group_->size() == 1) return std::nullopt;
    return owners_.at(key);
  }
  Rounds* rounds() override { return this; }

  void Barrier() override {
    for (const auto& [key, owner] : owners_) Complete(key);
    ProcessStore::Barrier();
    if (round_of_pushes_) Rest(false);
    while (round_of_pushes_ && !AllRest()) std::this_thread::sleep_for(kPauseOfWait);
    group_->Barrier();
    if (round_of_pushes_) End();
  }
  int rank() const override { return group_->rank(); }
  int num_workers() const override { return group_->size(); }

  // Rounds.
  void SetUpdater(Rounds::Updater updater) override {
    Plan();
    held_->SetUpdater(std::move(updater));
  }
  void Begin(int64_t updates) override {
    MXTRAIN_ASSERT(!begun_);
    Plan();
    if (!started_) {
      for (auto& [key, value] : held_values_) value.CopyFrom(Copies(key)[0]);
      held_->StartAt(updates);
    }
    started_ = begun_ = true;
    held_->BeginRound();
    Share();  // a rank that has all values knows that all have begun
  }
  bool begun() const override { return begun_; }
  void Rest(bool call) override { held_->Rest(call); }
  bool called() const override { return held_->called(); }
  bool AllRest() const override { return held_->AllRest(); }
  void End() override {
    begun_ = round_of_pushes_ = false;
    Share();
  }
  void ShowLife() override { held_->ShowLife(); }
  std::vector<int64_t> TakeStaleness() override { return held_->TakeStaleness(); }

 protected:
  bool SumsInPlace(int key, size_t workers) const override {
    const auto place = places_.find(key);
    return workers == 1 && (place == places_.end() || place->second.alone);
  }
  // Sends what waits of the key's parcel, key by key.
  void Complete(int key) override {
    if (!held_ || !places_.at(key).waits) return;
    const size_t p = places_.at(key).parcel;
    const std::vector<int>& keys = held_->parcels()[p].keys;
    for (size_t k = 0; k < keys.size(); ++k) {
      const Place& place = places_.at(keys[k]);
      if (!place.waits) continue;
      Exchange(p, static_cast<int64_t>(k), place.travels, place.priority);
      TakeValue(keys[k]);
    }
  }

 private:
  struct Place {
    size_t parcel = 0;
    bool alone = false;  // in it
    NDArray travels;     // the gradient, then the value; alone: in the gradient's own array
    bool waits = false;  // for the rest of its parcel
    int priority = 0;    // in this step
  };

  // Of the workers of this rank; without `share` a single one.
  std::span<const NDArray> Copies(int key) const { return ProcessStore::Values(key); }

  // Who holds what; with the first call after the keys are initialised.
  void Plan() {
    if (held_) return;
    owners_ = PlanOwners(specs_, group_->size());
    std::vector<Parcel> parcels = PlanParcels(specs_, owners_);
    if (parcels.size() > kMostParcels)
      Throw(ErrorKind::kConfig, "{} arrays of parameters are too many for dist_async",
            parcels.size());
    for (const Parcel& parcel : parcels) {
      NDArray& buffer = outgoing_.emplace_back();
      for (int key : parcel.keys) places_[key].parcel = outgoing_.size() - 1;
      if (parcel.keys.size() == 1) {
        places_[parcel.keys[0]].alone = true;
        continue;
      }
      const ParcelArrays arrays(runtime_, parcel, specs_);
      buffer = arrays.whole;
      for (size_t k = 0; k < parcel.keys.size(); ++k)
        places_[parcel.keys[k]].travels = arrays.parts[k];
    }
    held_ = std::make_shared<HeldKeys>(runtime_, group_, std::move(parcels), specs_, bound_);
    for (const auto& [key, owner] : owners_) {
      if (owner == group_->rank()) held_values_[key] = held_->Value(key);
    }
    // As in the other stores.
    held_->SetUpdater([](std::span<const KeyUpdate> keys, int64_t, int) {
      for (const KeyUpdate& key : keys) NDArray(key.local).CopyFrom(key.received, key.priority);
    });
    held_->Listen();
  }

  // The gradients of a parcel or a part of it, replaced by the values that they have made.
  void Exchange(size_t parcel, int64_t part, const NDArray& travels, int priority) {
    const engine::VarHandle var = travels.var();
    runtime_.engine().PushAsync(
        [held = held_, travels, parcel, part](RunContext, engine::Callback done) {
          held->Push({parcel, part, travels.data().data, travels.spec().Bytes()}, std::move(done));
        },
        {}, {&var, 1},
        {.property = engine::FnProperty::kComm, .priority = priority, .name = "exchange"});
  }

  // The answer.
  void TakeValue(int key) {
    Place& place = places_.at(key);
    place.waits = false;
    NDArray(Copies(key)[0]).CopyFrom(place.travels, place.priority);
  }

  // All workers of all ranks get what is held.
  void Share() {
    for (auto& [key, value] : held_values_) NDArray(Copies(key)[0]).CopyFrom(value);
    for (const auto& [key, owner] : owners_) {
      const std::span<const NDArray> copies = Copies(key);
      Broadcast(group_, copies[0], owner);
      for (NDArray other : copies.subspan(1)) other.CopyFrom(copies[0]);
    }
    for (const auto& [key, owner] : owners_) {
      for (const NDArray& copy : Copies(key)) copy.WaitToRead();
    }
  }

  const std::shared_ptr<ProcessGroup> group_;
  const int64_t bound_;  // staleness
  WorkerSums worker_sums_;
  std::map<int, TensorSpec> specs_;
  std::map<int, int> owners_;
  std::shared_ptr<HeldKeys> held_;  // planned once all keys are there
  std::map<int, NDArray> held_values_;
  std::vector<NDArray> outgoing_;  // buffers by parcel; empty: of a single key
  std::map<int, Place> places_;
  bool started_ = false, begun_ = false;
  bool round_of_pushes_ = false;  // the first push has begun it
};

}  // namespace

std::unique_ptr<KVStore> NewKVStoreDistAsync(Runtime& runtime, std::shared_ptr<ProcessGroup> group,
                                             const DistOptions& options) {
  return std::make_unique<KVStoreDistAsync>(runtime, std::move(group), options);
}

}  // namespace mxtrain
