// SPDX-License-Identifier: Apache-2.0
// KVStore `dist_async`: each key is held by one rank, which updates it by every gradient that
// arrives, and answers with the new value. What a rank computes with is a copy of its own, which
// changes by nothing but the answers to its own gradients.
#include <algorithm>
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
    if (keys.size() != specs_.size() || !begun_)
      Throw(ErrorKind::kBug, "an update of {} of {} keys of dist_async, {}", keys.size(),
            specs_.size(), begun_ ? "in a round" : "in no round");
    for (const KeySums& key : keys) places_.at(key.key).priority = key.priority;
    for (size_t p = 0; p < outgoing_.size(); ++p) {
      const Parcel& parcel = held_->parcels()[p];
      const Place& last = places_.at(parcel.keys.back());
      Exchange(p, outgoing_[p].empty() ? last.travels : outgoing_[p], last.priority);
      for (int key : parcel.keys) {
        const Place& place = places_.at(key);
        NDArray(Copies(key)[0]).CopyFrom(place.travels, place.priority);
      }
    }
  }

  void Pull(int key, std::span<const NDArray> out, int priority) override {
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
    ProcessStore::Barrier();
    group_->Barrier();
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
    begun_ = false;
    Share();
  }
  void ShowLife() override { held_->ShowLife(); }
  std::vector<int64_t> TakeStaleness() override { return held_->TakeStaleness(); }

 private:
  struct Place {
    bool alone = false;  // in its parcel
    NDArray travels;     // the gradient, then the value; alone: in the gradient's own array
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

  // The gradients of a parcel, replaced by the values that they have made.
  void Exchange(size_t p, const NDArray& travels, int priority) {
    const int owner = held_->parcels()[p].owner;
    const engine::VarHandle var = travels.var();
    runtime_.engine().PushAsync(
        [group = group_, held = held_, travels, p, owner](RunContext,
                                                          engine::Callback done) mutable {
          void* const memory = travels.data().data;
          if (owner == group->rank()) return held->Push(p, memory, std::move(done));
          const Message gradient{Message::Kind::kSend, owner, HeldKeys::GradientTag(p), memory,
                                 travels.spec().Bytes()};
          Message answer = gradient;
          answer.kind = Message::Kind::kReceive;
          answer.tag = HeldKeys::AnswerTag(p);
          // These own nothing of the runtime, which the lane may survive.
          group->Start(
              gradient, [group, answer, done = std::move(done)](std::exception_ptr error) mutable {
                if (error) return done(std::move(error));
                group->Start(answer, [done = std::move(done)](std::exception_ptr e) mutable {
                  done(std::move(e));
                });
              });
        },
        {}, {&var, 1},
        {.property = engine::FnProperty::kComm, .priority = priority, .name = "exchange"});
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
};

}  // namespace

std::unique_ptr<KVStore> NewKVStoreDistAsync(Runtime& runtime, std::shared_ptr<ProcessGroup> group,
                                             const DistOptions& options) {
  return std::make_unique<KVStoreDistAsync>(runtime, std::move(group), options);
}

}  // namespace mxtrain
