#pragma once
// Keeps parameters by key and brings them up to date: workers push gradients, which are summed, and pull values. Every call pushes engine
// operations and returns; priorities order them among what is ready (early layers' weights are needed first).
//
// `local` keeps one array of each value, on the first worker's device, where gradients are summed too. `device` is for workers on a GPU each:
// every GPU keeps an array of each value and updates it, by a sum that all have alike. With `share` these are the very arrays that were given
// to Init, so that an update writes the executor's weights, and nothing is copied where an array is kept.
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
#include "mxtrain/kvstore/loss_scale.h"
#include "mxtrain/ndarray/staged_array.h"
#include "mxtrain/operator/imperative.h"
#include "mxtrain/optimizer/optimizer.h"

namespace mxtrain {

class MXTRAIN_API KVStore {
 public:
  // local, or device, for which `workers` says where each of them computes: GPUs, each once. The other types of the reference system
  // (dist_sync, dist_device_sync, dist_async) are refused with what they need. Throws kDevice where GPUs cannot sum. `new_communicator`
  // empty: NewGpuCommunicator.
  static std::unique_ptr<KVStore> Create(Runtime& runtime, std::string_view type, std::span<const Context> workers = {},
                                         const CommunicatorFactory& new_communicator = {});
  virtual ~KVStore() = default;

  // Once per key: an array of each local worker, which all hold rank 0's value. With `share` the store keeps such arrays themselves, else
  // copies.
  virtual void Init(int key, std::span<const NDArray> values, bool share) = 0;
  // The arrays that the store keeps: of the first worker (local), of every one (device).
  virtual std::span<const NDArray> Values(int key) const = 0;
  // One gradient of each local worker; all of the shape, type and layout of the value. They are summed and given to the updater.
  void Push(int key, std::span<const NDArray> values, int priority) {
    const KeySums one{key, Sum(key, values, priority), priority};
    Update({&one, 1});
  }
  // The two halves of a push, for who wants all sums before the first update, and one update of many keys. A sum for each of Values(key), on its
  // device: `values` themselves, summed in place (device, or one worker), or an array of the store; good until the next sum of the key, and as
  // long as `values`.
  virtual std::span<const NDArray> Sum(int key, std::span<const NDArray> values, int priority) = 0;
  struct KeySums {
    int key;
    std::span<const NDArray> sums;  // of Sum
    int priority;
  };
  // Each key at most once.
  virtual void Update(std::span<const KeySums> keys) = 0;
  // Into arrays of the workers; one that is the value itself is left alone.
  virtual void Pull(int key, std::span<const NDArray> out, int priority) = 0;

  // What an update does with the sums of its keys; called for each device that keeps values. The default replaces the values.
  struct KeyUpdate {
    int key;
    const NDArray& received;
    const NDArray& local;
    int priority;
  };
  using Updater = std::function<void(std::span<const KeyUpdate> keys)>;
  virtual void SetUpdater(Updater updater) = 0;
  virtual void Barrier() = 0;
  virtual int rank() const = 0;
  virtual int num_workers() const = 0;  // processes
};

// An optimizer as the updater of a store: keeps the states of all keys and the array of scalars that the update kernels read, on each
// device that keeps weights. Its end waits for what it has pushed. A step that updates the same arrays as the one before allocates nothing.
//
// On the CPU each key is updated by an operation of its own, as soon as its gradient is there. On a GPU, where operations and launches cost
// more than that brings, an update of all keys is one operation, with the highest of their priorities, if their weights are of one type.
// The bits are the same.
class MXTRAIN_API OptimizerUpdater {
 public:
  struct Key {
    std::string name;
    std::vector<NDArray> weights;  // one on each device, in the same order for all keys
    Multipliers multipliers;
  };
  OptimizerUpdater(Runtime& runtime, std::unique_ptr<Optimizer> optimizer, std::vector<Key> keys, double rescale_grad);
  ~OptimizerUpdater();

  // Sets this step's values for all keys; before the pushes of the step. `lr` is the scheduled rate.
  void BeginStep(int64_t step, double lr);
  // Scales all gradients of the step by min(1, max_norm / ||g||), g = all of them times rescale_grad (operators/global_norm). After BeginStep.
  // Summed in the order of `keys`, on each device that keeps weights by its own sums.
  void ClipGlobalNorm(std::span<const KVStore::KeySums> keys, double max_norm);
  // Takes the scale of the loss out of the step's gradients, or leaves the step out, and finds the next step's scale. After BeginStep, before
  // ClipGlobalNorm.
  void TakeOutScale(std::span<const KVStore::KeySums> keys, LossScale* scale);
  // KVStore::Updater, of keys on one device.
  void Update(std::span<const KVStore::KeyUpdate> keys);

  // States of the first device, by "NAME/0", "NAME/1", ...: what a checkpoint holds.
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
    std::vector<std::vector<NDArray>> states;          // [key][state], in the weight's layout
    NDArray scalars;                                   // [keys, NumScalars]
    std::vector<NDArray> rows;                         // [key]: of scalars
    std::vector<std::optional<PreparedCall>> updates;  // [key]
    std::optional<PreparedCall> joint_update;          // of all keys
    // Of all gradients of a step, where something asks for it.
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
  void UpdateOne(Device& device, const KVStore::KeyUpdate& key);
  std::vector<Device> devices_;
  StagedArray all_scalars_;
  struct Scalars {
    std::vector<float> values;
    void Clear() { values.clear(); }
  };
  Recycler<Scalars> step_scalars_;  // on their way to all_scalars_
  std::vector<NDArray> arrays_;     // arguments of a call, while it is made
  double rescale_grad_;
};

}  // namespace mxtrain
