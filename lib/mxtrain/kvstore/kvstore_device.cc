// SPDX-License-Identifier: Apache-2.0
// KVStore `device`: every GPU keeps the values and updates them itself, identically. Gradients are
// all-reduced between the GPUs, in place, by a communicator.
//
// A sum is one function on the communication lane of the first GPU: it is ready when all GPUs have
// issued their gradients, and that lane orders all collectives.
#include <algorithm>
#include <set>

#include "mxtrain/base/error.h"
#include "mxtrain/kvstore/internal/process_store.h"

namespace mxtrain {
namespace {

class KVStoreDevice final : public ProcessStore {
 public:
  KVStoreDevice(Runtime& runtime, std::span<const Context> devices,
                std::shared_ptr<Communicator> communicator)
      : ProcessStore(runtime),
        devices_(devices.begin(), devices.end()),
        communicator_(std::move(communicator)) {}
  ~KVStoreDevice() override {
    for (auto& [key, collective] : collectives_)
      runtime_.engine().DeleteOperator(collective.all_reduce);
  }

  void Init(int key, std::span<const NDArray> values, bool share) override {
    CheckPlaces(key, values);
    for (const NDArray& value : values) {
      if (value.spec() == values[0].spec()) continue;
      Throw(ErrorKind::kConfig,
            "'{}' has different layouts on {} and {}: use kvstore.type=local, or GPUs of the same "
            "kind",
            value.who(), devices_[0].ToString(), value.ctx().ToString());
    }
    Keep(key, values, share);
  }

  std::span<const NDArray> Sum(int key, std::span<const NDArray> values, int priority) override {
    Values(key);  // throws for an unknown key
    CheckPlaces(key, values);
    if (values.size() == 1) return values;
    auto found = collectives_.find(key);
    if (found != collectives_.end() && !found->second.Takes(values)) {
      runtime_.engine().DeleteOperator(found->second.all_reduce);
      collectives_.erase(found);
      found = collectives_.end();
    }
    if (found == collectives_.end()) found = collectives_.emplace(key, NewCollective(values)).first;
    runtime_.engine().Push(found->second.all_reduce, priority);
    return values;
  }

 private:
  struct Collective {
    std::vector<NDArray> values;
    engine::OprHandle all_reduce = nullptr;

    bool Takes(std::span<const NDArray> others) const {
      return std::equal(values.begin(), values.end(), others.begin(), others.end(),
                        [](const NDArray& a, const NDArray& b) { return a.SameView(b); });
    }
  };

  void CheckPlaces(int key, std::span<const NDArray> values) const {
    const bool fits =
        std::equal(values.begin(), values.end(), devices_.begin(), devices_.end(),
                   [](const NDArray& value, Context device) { return value.ctx() == device; });
    if (!fits)
      Throw(ErrorKind::kBug, "key {} needs one array on each of the store's {} devices, in order",
            key, devices_.size());
  }

  Collective NewCollective(std::span<const NDArray> values) {
    const TensorSpec& spec = values[0].spec();
    std::vector<void*> data;
    std::vector<engine::VarHandle> writes;
    for (const NDArray& value : values) {
      data.push_back(value.data().data);
      writes.push_back(value.var());
    }
    // Elements including padding, which is zero and stays zero.
    const int64_t n = spec.Bytes() / SizeOf(spec.type);
    Collective collective{{values.begin(), values.end()}, nullptr};
    collective.all_reduce = runtime_.engine().NewOperator(
        [communicator = communicator_, data = std::move(data), type = spec.type, n](
            RunContext ctx, engine::Callback done) {
          communicator->AllReduce(ctx, type, data, n);
          done();
        },
        {}, writes,
        {.ctx = devices_[0], .property = engine::FnProperty::kComm, .name = "all_reduce"});
    return collective;
  }

  const std::vector<Context> devices_;
  const std::shared_ptr<Communicator> communicator_;  // shared with pushed functions
  std::map<int, Collective> collectives_;             // of keys with several workers
};

}  // namespace

std::unique_ptr<KVStore> NewKVStoreDevice(Runtime& runtime, std::span<const Context> workers,
                                          const CommunicatorFactory& new_communicator) {
  const std::set<Context> distinct(workers.begin(), workers.end());
  const bool on_gpus = std::all_of(workers.begin(), workers.end(),
                                   [](Context worker) { return worker.type == DeviceType::kGPU; });
  if (workers.empty() || !on_gpus || distinct.size() != workers.size()) {
    Throw(ErrorKind::kConfig, "KVStore 'device' needs one GPU per worker; use local");
  }
  std::shared_ptr<Communicator> communicator;
  if (workers.size() > 1)
    communicator = new_communicator ? new_communicator(workers) : NewGpuCommunicator(workers);
  return std::make_unique<KVStoreDevice>(runtime, workers, std::move(communicator));
}

}  // namespace mxtrain
