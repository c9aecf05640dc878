// SPDX-License-Identifier: Apache-2.0
// KVStores `device` and `dist_device_sync`: every GPU keeps the values and updates them itself,
// identically. Gradients are all-reduced between the GPUs, those of one process or of all ranks, in
// place, by a communicator.
//
// The sums of a bucket are one function on the communication lane of the first GPU: it is ready
// when all GPUs have issued all gradients of the bucket. In one process that lane orders all
// collectives. Ranks need the same order, so there each sum also writes one common variable: they
// are issued as they were pushed. With the wire in bfloat16, each GPU rounds its gradients into a
// buffer and takes the sums from there. A bucket one of whose keys is pulled before all were pushed
// is taken apart, as in dist_sync.
#include <algorithm>
#include <set>
#include <sstream>
#include <utility>

#include "mxtrain/base/error.h"
#include "mxtrain/kvstore/collectives.h"
#include "mxtrain/kvstore/internal/process_store.h"
#include "mxtrain/kvstore/internal/rounded_gradient.h"
#include "mxtrain/kvstore/internal/waiting_updates.h"

namespace mxtrain {
namespace {

using Wire = DistOptions::Wire;

// Rounding needs only a gradient of its own device, so it does not wait behind the step's kernels,
// as what depends on other devices does.
constexpr int kRoundingPriority = 0;

class KVStoreDevice final : public ProcessStore {
 public:
  KVStoreDevice(Runtime& runtime, std::span<const Context> devices,
                std::shared_ptr<Communicator> communicator, Wire wire,
                std::shared_ptr<ProcessGroup> group)
      : ProcessStore(runtime),
        devices_(devices.begin(), devices.end()),
        communicator_(std::move(communicator)),
        wire_(wire),
        group_(std::move(group)),
        order_(group_ ? runtime.engine().NewVar() : nullptr) {}
  ~KVStoreDevice() override {
    for (const Bucket& bucket : buckets_) Delete(bucket.all_reduce);
    if (group_) runtime_.engine().DeleteVariable(order_, {}, Context::cpu());
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
    if (!group_) return;
    const std::span<const NDArray> kept = Values(key);
    Broadcast(group_, kept[0]);
    for (NDArray other : kept.subspan(1)) other.CopyFrom(kept[0]);
  }

  void SetBuckets(std::vector<std::vector<int>> keys) override {
    if (!buckets_.empty()) Throw(ErrorKind::kBug, "buckets after the first sum, or twice");
    for (std::vector<int>& of_bucket : keys) AddBucket(std::move(of_bucket));
    RequireEqualBuckets(0);
  }

  std::span<const NDArray> Sum(int key, std::span<const NDArray> values, int priority) override {
    Values(key);  // throws for an unknown key
    CheckPlaces(key, values);
    if (!communicator_) return values;
    if (!places_.contains(key)) {
      AddBucket({key});
      RequireEqualBuckets(buckets_.size() - 1);
    }
    Place& place = places_.at(key);
    if (place.waits) Release(place.bucket);
    Bucket& bucket = buckets_[place.bucket];
    if (!place.Takes(values)) {
      place.values.assign(values.begin(), values.end());
      place.rounded.clear();
      for (size_t d = 0; d < values.size() && place.offset >= 0; ++d)
        place.rounded.emplace_back(values[d], bucket.buffers[d], place.offset);
      Delete(bucket.all_reduce);
      bucket.all_reduce = nullptr;
    }
    place.priority = priority;
    for (RoundedGradient& gradient : place.rounded) gradient.Leave(kRoundingPriority);
    place.waits = true;
    if (++bucket.summed == std::ssize(bucket.keys)) Send(&bucket, priority);
    return place.values;
  }

  void Update(std::span<const KeySums> keys) override {
    if (!communicator_) return ProcessStore::Update(keys);
    waiting_.Add(keys);
    UpdateSummed();
  }

  void Barrier() override {
    for (size_t bucket = 0, n = buckets_.size(); bucket < n; ++bucket) {
      if (buckets_[bucket].summed > 0) Release(bucket);
    }
    UpdateSummed();
    ProcessStore::Barrier();
    if (group_) group_->Barrier();
  }
  int rank() const override { return group_ ? group_->rank() : 0; }
  int num_workers() const override { return group_ ? group_->size() : 1; }

 protected:
  void Complete(int key) override {
    if (!waiting_.Contains(key)) return;
    Release(places_.at(key).bucket);
    UpdateSummed();
  }

 private:
  struct Bucket {
    std::vector<int> keys;
    std::vector<NDArray> buffers;  // of rounded gradients, on each device; empty: none is
    int64_t summed = 0;            // keys, since they were last sent
    engine::OprHandle all_reduce = nullptr;
  };
  struct Place {
    size_t bucket = 0;
    int64_t offset = -1;          // in the buffers, of a rounded gradient
    std::vector<NDArray> values;  // of the last sum
    std::vector<RoundedGradient> rounded;
    bool waits = false;  // it was summed, and not sent
    int priority = 0;    // in this step

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

  void Delete(engine::OprHandle all_reduce) {
    if (all_reduce) runtime_.engine().DeleteOperator(all_reduce);
  }

  void AddBucket(std::vector<int> keys) {
    Bucket& bucket = buckets_.emplace_back();
    bucket.keys = std::move(keys);
    int64_t bytes = 0;
    for (int key : bucket.keys) {
      const TensorSpec& spec = Values(key)[0].spec();
      const auto [place, fresh] = places_.try_emplace(key);
      if (!fresh) Throw(ErrorKind::kBug, "key {} is in two buckets", key);
      place->second.bucket = buckets_.size() - 1;
      if (wire_ == Wire::kFloat32 || spec.type != DType::kFloat32) continue;
      place->second.offset = bytes;
      bytes += AlignedInBuffer(StoredElements(spec) * SizeOf(DType::kBfloat16));
    }
    if (bytes == 0) return;
    for (const Context device : devices_) {
      bucket.buffers.push_back(NDArray::Zeros(runtime_, TShape({bytes / SizeOf(DType::kBfloat16)}),
                                              DType::kBfloat16, device));
    }
  }

  // Of the buckets from the n-th on. Ranks that sum different arrays would get garbage, or wait for
  // ever.
  void RequireEqualBuckets(size_t n) const {
    if (!group_) return;
    std::string own;
    for (; n < buckets_.size(); ++n) {
      for (int key : buckets_[n].keys) {
        const NDArray& value = Values(key)[0];
        const TensorSpec& spec = value.spec();
        own += format("'{}' (key {}), {} {} ({}) in bucket {}\n", value.who(), key,
                      spec.shape.ToString(), NameOf(spec.type), spec.layout.Name(), n);
      }
    }
    const std::vector<std::string> all = group_->GatherText(own);
    for (size_t r = 1; r < all.size(); ++r) {
      if (all[r] == all[0]) continue;
      const auto [first, other] = FirstDifference(all[0], all[r]);
      Throw(ErrorKind::kConfig,
            "rank {} would sum other gradients than rank 0: {}, where rank 0 has {}; all ranks "
            "need the same net, program and kind of GPU",
            r, other, first);
    }
  }

  // Lines of two texts that are not equal.
  static std::pair<std::string, std::string> FirstDifference(const std::string& a,
                                                             const std::string& b) {
    std::istringstream lines_a(a), lines_b(b);
    std::string line_a, line_b;
    do {
      if (!std::getline(lines_a, line_a)) line_a = "nothing";
      if (!std::getline(lines_b, line_b)) line_b = "nothing";
    } while (line_a == line_b);
    return {line_a, line_b};
  }

  // Sends what has come, before the rest of the bucket has: each key is a bucket from now on, of
  // which the first takes the place of all.
  void Release(size_t at) {
    Bucket whole = std::exchange(buckets_[at], {});
    Delete(whole.all_reduce);
    for (size_t k = 0; k < whole.keys.size(); ++k) {
      Place& place = places_.at(whole.keys[k]);
      place.bucket = k == 0 ? at : buckets_.size();
      Bucket& bucket = k == 0 ? buckets_[at] : buckets_.emplace_back();
      bucket.keys = {whole.keys[k]};
      if (place.offset >= 0) {
        const TShape part({StoredElements(Values(whole.keys[k])[0].spec())});
        for (const NDArray& buffer : whole.buffers)
          bucket.buffers.emplace_back(buffer, place.offset, part, buffer.dtype(), Layout());
        place.offset = 0;
      }
      if (place.waits) Send(&bucket, place.priority);
    }
  }

  // Of keys whose sums wait no more.
  void UpdateSummed() {
    ProcessStore::Update(waiting_.Take([this](int key) { return places_.at(key).waits; }));
  }

  void Send(Bucket* bucket, int priority) {
    bucket->summed = 0;
    for (int key : bucket->keys) places_.at(key).waits = false;
    if (!bucket->all_reduce) bucket->all_reduce = NewAllReduce(*bucket);
    runtime_.engine().Push(bucket->all_reduce, priority);
    for (int key : bucket->keys) {
      Place& place = places_.at(key);
      for (RoundedGradient& gradient : place.rounded) gradient.ComeBack(place.priority);
    }
  }

  engine::OprHandle NewAllReduce(const Bucket& bucket) {
    std::vector<ArrayOnEach> arrays;
    std::vector<engine::VarHandle> reads, writes;
    const auto add = [&](std::span<const NDArray> values) {
      // Elements including padding, which is zero and stays zero.
      ArrayOnEach& array = arrays.emplace_back();
      array.type = values[0].dtype();
      array.n = StoredElements(values[0].spec());
      for (const NDArray& value : values) {
        array.data.push_back(value.data().data);
        writes.push_back(value.var());
      }
    };
    if (!bucket.buffers.empty()) add(bucket.buffers);
    for (int key : bucket.keys) {
      if (places_.at(key).offset < 0) add(places_.at(key).values);
    }
    if (group_) writes.push_back(order_);
    engine::DeduplicateVars(&reads, &writes);  // arrays may be parts of one
    return runtime_.engine().NewOperator(
        [communicator = communicator_, arrays = std::move(arrays)](RunContext ctx,
                                                                   engine::Callback done) {
          communicator->AllReduce(ctx, arrays);
          done();
        },
        {}, writes,
        {.ctx = devices_[0], .property = engine::FnProperty::kComm, .name = "all_reduce"});
  }

  const std::vector<Context> devices_;
  const std::shared_ptr<Communicator> communicator_;  // shared with pushed functions
  const Wire wire_;
  const std::shared_ptr<ProcessGroup> group_;  // null: one process
  const engine::VarHandle order_;              // of the sums; null without a group
  // With a communicator.
  std::vector<Bucket> buckets_;
  std::map<int, Place> places_;
  WaitingUpdates waiting_;
};

}  // namespace

std::unique_ptr<KVStore> NewKVStoreDevice(Runtime& runtime, std::span<const Context> workers,
                                          const CommunicatorFactory& new_communicator, Wire wire,
                                          std::shared_ptr<ProcessGroup> group) {
  const std::set<Context> distinct(workers.begin(), workers.end());
  const bool on_gpus = std::all_of(workers.begin(), workers.end(),
                                   [](Context worker) { return worker.type == DeviceType::kGPU; });
  if (workers.empty() || !on_gpus || distinct.size() != workers.size()) {
    Throw(ErrorKind::kConfig, "KVStore '{}' needs one GPU per worker; use {}",
          group ? "dist_device_sync" : "device", group ? "dist_sync" : "local");
  }
  std::shared_ptr<Communicator> communicator;
  if (workers.size() > 1 || group)
    communicator =
        new_communicator ? new_communicator(workers) : NewGpuCommunicator(workers, group);
  return std::make_unique<KVStoreDevice>(runtime, workers, std::move(communicator), wire,
                                         std::move(group));
}

}  // namespace mxtrain
