// SPDX-License-Identifier: Apache-2.0
#pragma once
// Stores parameters by key and updates them: workers push gradients, which are summed, and pull
// values. Every call pushes engine operations and returns; priorities order ready operations (early
// layers' weights are needed first).
//
// `local` keeps one array per value on the first worker's device, where gradients are also summed.
// `device` is for one worker per GPU: every GPU keeps an array per value and updates it from an
// all-reduced sum. `dist_sync` is for several processes, each with workers of its own: every
// process keeps the arrays and updates them from a sum over all processes. `dist_device_sync` is
// `device` over the GPUs of several processes. `dist_async` sums nothing over processes: each key
// is held by one of them, which updates it by every gradient that arrives (rounds.h). With `share`
// the store keeps the arrays passed to Init, so an update writes the executor's weights without a
// copy.
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/base/recycler.h"
#include "mxtrain/device/communicator.h"
#include "mxtrain/device/process_group.h"
#include "mxtrain/kvstore/loss_scale.h"
#include "mxtrain/ndarray/staged_array.h"
#include "mxtrain/operator/imperative.h"
#include "mxtrain/optimizer/optimizer.h"

namespace mxtrain {

// Of dist_sync and dist_async, where all ranks have the same, and the wire of the stores between
// GPUs too.
struct DistOptions {
  // How float32 gradients travel between devices or ranks; updates are float32.
  enum class Wire : uint8_t {
    kFloat32,
    kBfloat16,  // gradients are rounded to bfloat16, and so are their sums
    kTwoBit,    // MXNet's compression with error feedback (two_bit.h); between ranks
  };
  Wire wire = Wire::kFloat32;
  float threshold = 0.5F;  // of kTwoBit, above 0
  // Each rank keeps the optimizer's states of its part of the keys and updates these (shards.h).
  bool shard_states = false;
  // Of dist_async alone, which has none of the above: the most updates of a key by other ranks
  // between the read of a value and the update computed from it, at least ranks - 1 (staleness.h).
  // 0: 4 (ranks - 1), for a rank that is four times slower than the others.
  int64_t staleness = 0;
};

class Rounds;

class MXTRAIN_API KVStore {
 public:
  // "local"; "device", for which `workers` are distinct GPUs; "dist_sync", which needs `group` and
  // workers on the CPU, and whose calls all ranks make in the same order, whichever that is;
  // "dist_device_sync", which needs `group` and GPUs as `device`, and the same order; "dist_async",
  // which needs what dist_sync does, and the order only between rounds (rounds.h). Throws kConfig
  // for options that the type does not have, kDevice if the GPUs cannot all-reduce. Empty
  // `new_communicator`: NewGpuCommunicator.
  static std::unique_ptr<KVStore> Create(Runtime& runtime, std::string_view type,
                                         std::span<const Context> workers = {},
                                         const CommunicatorFactory& new_communicator = {},
                                         std::shared_ptr<ProcessGroup> group = nullptr,
                                         const DistOptions& dist = {});
  virtual ~KVStore() = default;

  // Once per key: one array per local worker, all holding rank 0's value. With `share` the store
  // keeps these arrays, else copies.
  virtual void Init(int key, std::span<const NDArray> values, bool share) = 0;
  // The stored arrays: of the first worker (local) or of every worker (device).
  virtual std::span<const NDArray> Values(int key) const = 0;
  // Between Init and the first Sum: keys whose gradients become ready at about the same time, in
  // one list each. The stores between GPUs sum each list by one collective, and a key that is in
  // none alone; the others decide for themselves. Throws kConfig if ranks have different lists.
  virtual void SetBuckets(std::vector<std::vector<int>> /*keys*/) {}
  // One gradient per local worker, of the value's shape, type and layout. They stay as they are,
  // but on several GPUs, where each becomes the sum. They are summed and passed to the updater: at
  // the latest when the key is pulled or pushed again, or at a Barrier. Until then a key may wait
  // for others that travel with it. In dist_async the first push of all ranks begins a round
  // (rounds.h), which Barrier ends: to be called by all before the store is destroyed.
  virtual void Push(int key, std::span<const NDArray> values, int priority) = 0;
  // The two halves of a push, for callers that need all sums before the first update, or one update
  // of many keys. Returns a sum for each of Values(key), on its device: `values` themselves, summed
  // in place (device, or one worker), or an array of the store; valid until the next sum of the key
  // and as long as `values`. Not to be read before all keys are summed, or Update is called.
  virtual std::span<const NDArray> Sum(int key, std::span<const NDArray> values, int priority) = 0;
  struct KeySums {
    int key;
    std::span<const NDArray> sums;  // of Sum
    int priority;
  };
  // Each key at most once; the update of one may wait as that of a push. With sharded states it is
  // best given all keys at once: the values of some travel one by one.
  virtual void Update(std::span<const KeySums> keys) = 0;
  // Copies the value, after all updates so far, into the workers' arrays, except where an array is
  // the value itself.
  virtual void Pull(int key, std::span<const NDArray> out, int priority) = 0;

  // Applies sums to values; called for each device that keeps values. The default replaces the
  // values.
  struct KeyUpdate {
    int key;
    const NDArray& received;
    const NDArray& local;
    int priority;
  };
  using Updater = std::function<void(std::span<const KeyUpdate> keys)>;
  virtual void SetUpdater(Updater updater) = 0;
  // The only rank that updates the key, if states are sharded, or in dist_async; nothing: all ranks
  // do. Once all keys are initialised.
  virtual std::optional<int> OwnerOf(int /*key*/) { return std::nullopt; }
  // What compression has not sent yet of this rank's gradients; empty without compression.
  virtual std::map<int, NDArray> Residuals() const { return {}; }
  // Of dist_async; null: all ranks take the same steps.
  virtual Rounds* rounds() { return nullptr; }
  // Waits until all ranks are here, and all that they have pushed was applied.
  virtual void Barrier() = 0;
  virtual int rank() const = 0;
  virtual int num_workers() const = 0;  // processes
};

// An optimizer as the updater of a store: holds the states of all keys and the scalars that the
// update kernels read, on each device that keeps weights. Its destructor waits for what it has
// pushed. A step that updates the same arrays as the previous one, by slot, allocates nothing.
//
// On the CPU each key is updated by its own operation, as soon as its gradient is ready. On a GPU,
// where operations and launches cost more than that gains, all keys are updated by one operation
// with the highest of their priorities, if their weights have one type. The bits are the same.
class MXTRAIN_API OptimizerUpdater {
 public:
  struct Key {
    std::string name;
    // One per device, in the same order for all keys; a single one may be on a device of its own.
    std::vector<NDArray> weights;
    Multipliers multipliers;
    int64_t first_step = 0;  // the steps before did not update it
    bool updated = true;     // false: elsewhere; it has no states, and is not passed to Update
    bool by_rows = false;    // only the rows of SetRows are updated; one device
  };
  // May be destroyed at any time; what was pushed keeps what it needs.
  OptimizerUpdater(Runtime& runtime, std::unique_ptr<Optimizer> optimizer, std::vector<Key> keys,
                   double rescale_grad);

  // The rate of keys that begin to learn later (first_step above 0) rises in equal parts over their
  // first so many updates, to the scheduled one; 0: it is that from the first on. From the next
  // BeginStep on.
  void SetWarmup(int64_t updates) { warmup_ = updates; }
  // Sets this step's values for all keys; call before the step's pushes. `lr`: the scheduled rate.
  void BeginStep(int64_t step, double lr);
  // Scales all gradients of the step by min(1, max_norm / ||g||), g = all of them times
  // rescale_grad (operators/global_norm). After BeginStep. Summed in the order of `keys`, on each
  // device from its own sums.
  void ClipGlobalNorm(std::span<const KVStore::KeySums> keys, double max_norm);
  // Divides the step's gradients by the loss scale, or skips the step, and computes the next step's
  // scale. After BeginStep, before ClipGlobalNorm.
  void TakeOutScale(std::span<const KVStore::KeySums> keys, LossScale* scale);
  // Of a key by rows, before each Update: the rows that its gradient is of; the update clears them
  // there. The array keeps its numbers until then.
  void SetRows(int key, NDArray rows) { rows_read_[key] = std::move(rows); }
  // KVStore::Updater for keys on one device. `slot`: which of several arrays `received` is, of a
  // store that receives gradients of a key in one for each rank.
  void Update(std::span<const KVStore::KeyUpdate> keys, int slot = 0);

  // States of the first device, by "NAME/0", "NAME/1", ..., for checkpoints.
  std::map<std::string, NDArray> States() const { return StatesOn(0); }
  // The devices of the weights all hold the same states.
  int num_devices() const { return static_cast<int>(devices_.size()); }
  std::vector<Context> devices() const;
  std::map<std::string, NDArray> StatesOn(int device) const;
  const Optimizer& optimizer() const { return *optimizer_; }

 private:
  Runtime& runtime_;
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<Key> keys_;
  struct Device {
    Context ctx;
    std::vector<std::vector<NDArray>> states;  // [key][state], in the weight's layout
    NDArray scalars;                           // [keys, NumScalars], on ctx
    std::vector<NDArray> rows;                 // [key]: of the scalars beside the weight
    std::vector<std::vector<std::optional<PreparedCall>>> updates;  // [key][slot]
    std::optional<PreparedCall> joint_update;                       // of all keys
    // Of all gradients of a step, if requested.
    struct Squares {
      NDArray sums;
      PreparedCall call;
      bool known;  // of this step
    };
    std::optional<Squares> squares;
    struct Clipping {
      double max_norm;
      PreparedCall call;
    };
    std::optional<Clipping> clipping;
  };
  Device& DeviceOf(const NDArray& weight);
  const NDArray& SumSquares(size_t device, std::span<const KVStore::KeySums> keys);
  bool GoTogether(const Device& device, std::span<const KVStore::KeyUpdate> keys) const;
  void UpdateTogether(Device& device, std::span<const KVStore::KeyUpdate> keys);
  void UpdateOne(Device& device, const KVStore::KeyUpdate& key, size_t slot);
  void UpdateRows(Device& device, const KVStore::KeyUpdate& key);
  std::vector<Device> devices_;
  StagedArray all_scalars_;
  struct Scalars {
    std::vector<float> values;
    void Clear() { values.clear(); }
  };
  Recycler<Scalars> step_scalars_;                            // being copied to all_scalars_
  std::vector<NDArray> arrays_;                               // arguments of the current call
  std::map<int, NDArray> rows_read_;                          // by key
  std::map<int, std::vector<PreparedCall>> updates_of_rows_;  // one for each array of rows
  double rescale_grad_;
  int64_t warmup_ = 0;
};

}  // namespace mxtrain
