// SPDX-License-Identifier: Apache-2.0
// KVStore `dist_sync`: every rank keeps the values and updates them itself, identically. A rank
// sums the gradients of its own workers, then all ranks all-reduce these sums.
//
// Gradients travel in buckets, from the highest key to the lowest: a caller that numbers its keys
// in the order of the net has the last layers' gradients first. While a bucket travels, earlier
// layers' gradients are computed, and the weights of the buckets before it are updated. Small
// gradients are copied into the bucket's buffer, where the updates read their sums; one that fills
// a bucket alone travels in its own array.
#include <algorithm>

#include "mxtrain/base/error.h"
#include "mxtrain/base/math.h"
#include "mxtrain/kvstore/collectives.h"
#include "mxtrain/kvstore/internal/process_store.h"
#include "mxtrain/kvstore/internal/worker_sums.h"

namespace mxtrain {
namespace {

// Large enough that latency does not matter, small enough that the first layers' gradients, which
// nothing hides, are few.
constexpr int64_t kBucketBytes = int64_t{4} << 20;
constexpr int64_t kAlignment = 64;

class KVStoreDist final : public ProcessStore {
 public:
  KVStoreDist(Runtime& runtime, std::shared_ptr<ProcessGroup> group)
      : ProcessStore(runtime), group_(std::move(group)), worker_sums_(runtime) {}

  void Init(int key, std::span<const NDArray> values, bool share) override {
    if (!buckets_.empty()) Throw(ErrorKind::kBug, "key {} was initialised after a sum", key);
    Keep(key, values.first(1), share);
    specs_.emplace(key, values[0].spec());
    Broadcast(group_, Values(key)[0]);
    for (NDArray other : values.subspan(1)) other.CopyFrom(Values(key)[0]);
  }

  std::span<const NDArray> Sum(int key, std::span<const NDArray> values, int priority) override {
    Values(key);  // throws for an unknown key
    if (buckets_.empty()) PlanBuckets();
    Place& place = places_.at(key);
    Bucket& bucket = buckets_[place.bucket];
    const NDArray& own = worker_sums_.Sum(key, values, priority)[0];
    if (bucket.keys == 1) {
      if (!bucket.all_reduce || !bucket.all_reduce->array().SameView(own))
        bucket.all_reduce = std::make_unique<PreparedAllReduce>(group_, own);
      place.sum = own;
    } else {
      place.sum.CopyFrom(own, priority);
    }
    if (++bucket.summed == bucket.keys) {
      bucket.summed = 0;
      bucket.all_reduce->Push(priority);
    }
    return {&place.sum, 1};
  }

  void Update(std::span<const KeySums> keys) override {
    for (const Bucket& bucket : buckets_) {
      if (bucket.summed > 0)
        Throw(ErrorKind::kBug, "an update while {} of the {} gradients of a bucket are summed",
              bucket.summed, bucket.keys);
    }
    ProcessStore::Update(keys);
  }

  void Barrier() override {
    ProcessStore::Barrier();
    group_->Barrier();
  }
  int rank() const override { return group_->rank(); }
  int num_workers() const override { return group_->size(); }

 private:
  struct Bucket {
    int keys = 0, summed = 0;  // summed: in this step so far
    int64_t bytes = 0;         // of keys that share a buffer
    DType type = DType::kFloat32;
    NDArray buffer;
    std::unique_ptr<PreparedAllReduce> all_reduce;
  };
  struct Place {
    size_t bucket = 0;
    int64_t offset = 0;  // in the buffer
    NDArray sum;         // in the buffer; of a key alone, its own array
  };

  void PlanBuckets() {
    for (auto key = specs_.rbegin(); key != specs_.rend(); ++key) {
      const TensorSpec& spec = key->second;
      const int64_t bytes = CeilDivide(spec.Bytes(), kAlignment) * kAlignment;
      const bool fits = !buckets_.empty() && buckets_.back().type == spec.type &&
                        buckets_.back().bytes + bytes <= kBucketBytes;
      if (!fits) buckets_.emplace_back().type = spec.type;
      Bucket& bucket = buckets_.back();
      places_[key->first] = {buckets_.size() - 1, bucket.bytes, {}};
      ++bucket.keys;
      bucket.bytes += bytes;
    }
    for (auto& [key, place] : places_) {
      Bucket& bucket = buckets_[place.bucket];
      if (bucket.keys == 1) continue;
      if (bucket.buffer.empty()) {
        bucket.buffer = NDArray::Zeros(runtime_, TShape({bucket.bytes / SizeOf(bucket.type)}),
                                       bucket.type, Values(key)[0].ctx());
        bucket.all_reduce = std::make_unique<PreparedAllReduce>(group_, bucket.buffer);
      }
      const TensorSpec& spec = specs_.at(key);
      place.sum = NDArray(bucket.buffer, place.offset, spec.shape, spec.type, spec.layout);
    }
  }

  const std::shared_ptr<ProcessGroup> group_;
  WorkerSums worker_sums_;
  std::map<int, TensorSpec> specs_;
  std::vector<Bucket> buckets_;  // in the order in which they travel; planned by the first sum
  std::map<int, Place> places_;
};

}  // namespace

std::unique_ptr<KVStore> NewKVStoreDist(Runtime& runtime, std::shared_ptr<ProcessGroup> group) {
  return std::make_unique<KVStoreDist>(runtime, std::move(group));
}

}  // namespace mxtrain
