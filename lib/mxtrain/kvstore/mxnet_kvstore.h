// SPDX-License-Identifier: Apache-2.0
#pragma once
// The KVStore with MXNet's calls (docs/mxnet_forms.md): one key or a list of keys, one array or a
// list of them.
//
//   mxnet::KVStore kv(*store);
//   kv.Init({0, 1}, {weight, bias});
//   kv.Push({0, 1}, {weight_grad, bias_grad});
//   kv.Pull({0, 1}, {&weight, &bias});
//
// kvstore.h is the contract; everything is passed on to a store of it, keys in the order of the
// list. A key that stands several times in a list has an array for each of the local workers, as a
// push of several devices has in MXNet.
#include <functional>
#include <initializer_list>
#include <vector>

#include "mxtrain/kvstore/kvstore.h"

namespace mxtrain::mxnet {

class MXTRAIN_API KVStore {
 public:
  // Sets local from received.
  using Updater = std::function<void(int key, const NDArray& received, NDArray* local)>;

  // The store must outlive it.
  explicit KVStore(mxtrain::KVStore& store) : store_(store) {}

  // Throw kUsage if the lists have different lengths. The store keeps copies.
  void Init(const std::vector<int>& keys, const std::vector<NDArray>& values);
  void Push(const std::vector<int>& keys, const std::vector<NDArray>& values, int priority = 0);
  void Pull(const std::vector<int>& keys, const std::vector<NDArray*>& values, int priority = 0);
  void Init(int key, const NDArray& value) { Init(std::vector<int>{key}, {value}); }
  void Push(int key, const NDArray& value, int priority = 0) {
    Push(std::vector<int>{key}, {value}, priority);
  }
  void Pull(int key, NDArray* value, int priority = 0) {
    Pull(std::vector<int>{key}, {value}, priority);
  }

  void set_updater(const Updater& updater);
  void Barrier() { store_.Barrier(); }
  int get_rank() const { return store_.rank(); }
  int get_group_size() const { return store_.num_workers(); }

 private:
  mxtrain::KVStore& store_;
};

}  // namespace mxtrain::mxnet
