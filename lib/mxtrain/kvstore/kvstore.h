#pragma once
// Keeps parameters by key and brings them up to date: workers push gradients, which are summed, and pull values. Every call pushes engine
// operations and returns; priorities order them among what is ready (early layers' weights are needed first).
//
// `local` with one pusher per key: the value is the very array that was given to Init when `share` is set, so that an update writes the
// executor's weights and nothing is copied.
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/base/recycler.h"
#include "mxtrain/ndarray/staged_array.h"
#include "mxtrain/operator/imperative.h"
#include "mxtrain/optimizer/optimizer.h"

namespace mxtrain {

class MXTRAIN_API KVStore {
 public:
  // local. The other types of the reference system (device, dist_sync, dist_device_sync, dist_async) are refused with what they need.
  static std::unique_ptr<KVStore> Create(Runtime& runtime, std::string_view type);
  virtual ~KVStore() = default;

  // Once per key, by rank 0's value. With `share` the store keeps the array itself, else a copy.
  virtual void Init(int key, const NDArray& value, bool share) = 0;
  // One gradient of each local worker; all of the shape, type and layout of the value. They are summed in order.
  virtual void Push(int key, std::span<const NDArray> values, int priority) = 0;
  // Into arrays of the workers; one that is the value itself is left alone.
  virtual void Pull(int key, std::span<const NDArray> out, int priority) = 0;

  // What a push does with the sum. The default replaces the value.
  using Updater = std::function<void(int key, const NDArray& received, const NDArray& local, int priority)>;
  virtual void SetUpdater(Updater updater) = 0;
  virtual void Barrier() = 0;
  virtual int rank() const = 0;
  virtual int num_workers() const = 0;  // processes
};

// An optimizer as the updater of a store: keeps the states of all keys and the array of scalars that the update kernels read. It must outlive
// what it pushed. A step that updates the same arrays as the one before allocates nothing.
class MXTRAIN_API OptimizerUpdater {
 public:
  struct Key {
    std::string name;
    NDArray weight;
    Multipliers multipliers;
  };
  OptimizerUpdater(Runtime& runtime, std::unique_ptr<Optimizer> optimizer, std::vector<Key> keys, double rescale_grad);

  // Sets this step's values for all keys; before the pushes of the step. `lr` is the scheduled rate.
  void BeginStep(int64_t step, double lr);
  // Scales all gradients of the step by min(1, max_norm / ||g||), g = all of `grads` times rescale_grad: clipping by global norm. Summed in
  // double, in key order. After BeginStep.
  void ClipGlobalNorm(std::span<const NDArray> grads, double max_norm);
  void Update(int key, const NDArray& grad, const NDArray& weight, int priority);

  // States by "NAME/0", "NAME/1", ...: what a checkpoint holds.
  std::map<std::string, NDArray> States() const;
  const Optimizer& optimizer() const { return *optimizer_; }

 private:
  Runtime& runtime_;
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<Key> keys_;
  std::vector<std::vector<NDArray>> states_;  // [key][state], in the weight's layout
  std::vector<NDArray> scalars_;              // [key]: rows of one array
  StagedArray all_scalars_;
  std::vector<std::optional<PreparedCall>> updates_;  // [key]
  struct Scalars {
    std::vector<float> values;
    void Clear() { values.clear(); }
  };
  Recycler<Scalars> step_scalars_;  // on their way to all_scalars_
  struct Held {
    std::vector<NDArray> arrays;
    void Clear() { arrays.clear(); }
  };
  Recycler<Held> held_;                          // gradients whose norm is taken
  std::vector<engine::VarHandle> reads_, writes_;  // of a push
  double rescale_grad_;
};

}  // namespace mxtrain
