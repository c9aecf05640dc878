// KVStore `local`: one process; sums on the CPU.
#include "mxtrain/base/error.h"
#include "mxtrain/base/suggest.h"
#include "mxtrain/kvstore/kvstore.h"
#include "mxtrain/operator/imperative.h"

namespace mxtrain {
namespace {

class KVStoreLocal final : public KVStore {
 public:
  explicit KVStoreLocal(Runtime& runtime) : runtime_(runtime) {}

  void Init(int key, const NDArray& value, bool share) override {
    if (!values_.try_emplace(key).second) Throw(ErrorKind::kBug, "key {} of the store was initialised twice", key);
    values_[key].array = share ? value : value.Copy(value.ctx());
  }

  void Push(int key, std::span<const NDArray> values, int priority) override {
    Value& value = Find(key);
    if (values.empty()) Throw(ErrorKind::kBug, "a push to key {} without a value", key);
    NDArray sum = values[0];
    if (values.size() > 1) {
      if (value.merged.empty()) {
        value.merged = NDArray(runtime_, sum.shape(), sum.dtype(), sum.ctx(), sum.layout(), format("sum of key {}", key));
      }
      sum = value.merged;
      if (!value.merge || !value.merge->Takes(values)) {
        value.merge.emplace("ElementWiseSum", values, std::span(&sum, 1), OpReqType::kWriteTo,
                            Kwargs{{"num_args", std::to_string(values.size())}}, std::span<const NDArray>());
      }
      value.merge->Push(priority);
    }
    if (updater_) {
      updater_(key, sum, value.array, priority);
    } else {
      value.array.CopyFrom(sum, priority);
    }
  }

  void Pull(int key, std::span<const NDArray> out, int priority) override {
    const NDArray& value = Find(key).array;
    for (NDArray target : out) target.CopyFrom(value, priority);  // nothing where the target is the value itself
  }

  void SetUpdater(Updater updater) override { updater_ = std::move(updater); }
  void Barrier() override { runtime_.engine().WaitForAll(); }
  int rank() const override { return 0; }
  int num_workers() const override { return 1; }

 private:
  struct Value {
    NDArray array, merged;
    std::optional<PreparedCall> merge;  // of several pushers
  };
  Value& Find(int key) {
    const auto found = values_.find(key);
    if (found == values_.end()) Throw(ErrorKind::kBug, "key {} of the store was never initialised", key);
    return found->second;
  }

  Runtime& runtime_;
  std::map<int, Value> values_;
  Updater updater_;
};

}  // namespace

std::unique_ptr<KVStore> KVStore::Create(Runtime& runtime, std::string_view type) {
  if (type == "local") return std::make_unique<KVStoreLocal>(runtime);
  if (type == "device") {
    Throw(ErrorKind::kConfig, "KVStore 'device' sums on GPUs, which this build does not have; use local");
  }
  if (type == "dist_sync" || type == "dist_device_sync" || type == "dist_async") {
    Throw(ErrorKind::kConfig, "KVStore '{}' needs several processes, which this build does not support; use local", type);
  }
  const std::vector<std::string> names = {"local", "device", "dist_sync", "dist_device_sync", "dist_async"};
  Throw(ErrorKind::kConfig, "there is no KVStore '{}'{}; use local", type, DidYouMean(type, names));
}

}  // namespace mxtrain
