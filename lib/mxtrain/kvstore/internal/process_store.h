// SPDX-License-Identifier: Apache-2.0
#pragma once
// Base of the stores that keep the values in each process: values by key, updates and pulls. A
// store adds which arrays it keeps and how it sums.
#include "mxtrain/kvstore/kvstore.h"

namespace mxtrain {

class ProcessStore : public KVStore {
 public:
  explicit ProcessStore(Runtime& runtime) : runtime_(runtime) {}

  std::span<const NDArray> Values(int key) const override;
  void Push(int key, std::span<const NDArray> values, int priority) override;
  void Update(std::span<const KeySums> keys) override;
  void Pull(int key, std::span<const NDArray> out, int priority) override;
  void SetUpdater(Updater updater) override { updater_ = std::move(updater); }
  void Barrier() override { runtime_.engine().WaitForAll(); }
  int rank() const override { return 0; }
  int num_workers() const override { return 1; }

 protected:
  // Once per key: keeps the arrays, or copies.
  void Keep(int key, std::span<const NDArray> values, bool share);
  // Whether a push must not sum the gradients of the key themselves, which Sum would replace.
  virtual bool SumsInPlace(int /*key*/, size_t /*workers*/) const { return false; }
  // Before the key is pulled, or pushed again: makes the updates of it that wait for other keys.
  virtual void Complete(int /*key*/) {}

  Runtime& runtime_;

 private:
  std::map<int, std::vector<NDArray>> values_;
  std::map<int, std::vector<NDArray>> pushed_;  // copies of gradients that are summed in place
  Updater updater_;                             // empty: sums replace the values
  std::vector<KeyUpdate> updates_;              // of one device, while its updater is called
};

// The types of KVStore::Create. `device` with a group is dist_device_sync.
std::unique_ptr<KVStore> NewKVStoreLocal(Runtime& runtime);
std::unique_ptr<KVStore> NewKVStoreDevice(Runtime& runtime, std::span<const Context> workers,
                                          const CommunicatorFactory& new_communicator,
                                          DistOptions::Wire wire,
                                          std::shared_ptr<ProcessGroup> group = nullptr);
std::unique_ptr<KVStore> NewKVStoreDist(Runtime& runtime, std::shared_ptr<ProcessGroup> group,
                                        const DistOptions& options);
std::unique_ptr<KVStore> NewKVStoreDistAsync(Runtime& runtime, std::shared_ptr<ProcessGroup> group,
                                             const DistOptions& options);

}  // namespace mxtrain
