// SPDX-License-Identifier: Apache-2.0
// KVStore `dist_sync`: every rank keeps the values. A rank sums the gradients of its own workers,
// then all ranks sum these sums, and update the values identically.
//
// Gradients travel in buckets, which are made from the highest key to the lowest: a caller that
// numbers its keys in the order of the net has the last layers' gradients first. While a bucket
// travels, earlier layers' gradients are computed, and the weights of the buckets before it are
// updated. They leave as they are complete, until rank 0 has measured when they are ready and how
// long they take; then in an order that lets the next forward pass begin early (send_order.h).
// Small gradients are copied into the bucket's buffer, where the updates read their sums; a large
// one travels in its own array. Rounded or packed ones leave by the buffer, and their sums come
// back into their own arrays.
//
// A caller that pushes key by key, and pulls or pushes one again before its bucket is complete,
// takes the bucket apart: from then on each of its keys travels alone. As all ranks make the same
// calls, all take it apart at the same place.
//
// With sharded states a key is updated by one rank, and its value travels to the others, in a
// parcel with further values of that rank if all of them were updated together.
#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "mxtrain/base/error.h"
#include "mxtrain/kvstore/collectives.h"
#include "mxtrain/kvstore/internal/parcels.h"
#include "mxtrain/kvstore/internal/process_store.h"
#include "mxtrain/kvstore/internal/rounded_gradient.h"
#include "mxtrain/kvstore/internal/waiting_updates.h"
#include "mxtrain/kvstore/internal/worker_sums.h"
#include "mxtrain/kvstore/send_order.h"
#include "mxtrain/kvstore/two_bit.h"

namespace mxtrain {
namespace {

using Wire = DistOptions::Wire;

// Large enough that latency does not matter, small enough that the first layers' gradients, which
// nothing hides, are few. Larger gradients travel alone, and as soon as they are there.
constexpr int64_t kBucketBytes = int64_t{1} << 20;
constexpr int64_t kPackedBucketBytes = kBucketBytes / 4;
// The updates after which the order of sending is planned: ever fewer, as all ranks wait for each
// other then.
constexpr int64_t kFirstPlan = 5, kPlansApart = 10;

// A function of arrays that is pushed in every step.
class Repeated {
 public:
  Repeated(Runtime& runtime, std::function<void()> function, const NDArray& reads,
           std::vector<engine::VarHandle> writes, const char* name)
      : engine_(runtime.engine()) {
    const engine::VarHandle read = reads.var();
    opr_ = engine_.NewOperator(
        [function = std::move(function)](RunContext, engine::Callback done) {
          function();
          done();
        },
        {&read, 1}, writes, {.name = name});
  }
  ~Repeated() { engine_.DeleteOperator(opr_); }
  Repeated(const Repeated&) = delete;
  Repeated& operator=(const Repeated&) = delete;

  void Push(int priority) { engine_.Push(opr_, priority); }

 private:
  engine::Engine& engine_;
  engine::OprHandle opr_;
};

class KVStoreDist final : public ProcessStore {
 public:
  KVStoreDist(Runtime& runtime, std::shared_ptr<ProcessGroup> group, const DistOptions& options)
      : ProcessStore(runtime),
        group_(std::move(group)),
        options_(options),
        two_bit_(std::make_shared<const TwoBit>(options.threshold)),
        worker_sums_(runtime) {}

  void Init(int key, std::span<const NDArray> values, bool share) override {
    if (!buckets_.empty() || !owners_.empty())
      Throw(ErrorKind::kBug, "key {} was initialised after a sum", key);
    Keep(key, values.first(1), share);
    const TensorSpec& spec = values[0].spec();
    specs_.emplace(key, spec);
    if (WireOf(spec.type) == Wire::kTwoBit) {
      residuals_.emplace(
          key, NDArray::Zeros(runtime_, spec.shape, spec.type, values[0].ctx(), spec.layout));
    }
    Broadcast(group_, Values(key)[0]);
    for (NDArray other : values.subspan(1)) other.CopyFrom(Values(key)[0]);
  }

  std::span<const NDArray> Sum(int key, std::span<const NDArray> values, int priority) override {
    Values(key);  // throws for an unknown key
    if (buckets_.empty()) PlanBuckets();
    Place& place = places_.at(key);
    if (place.waits) Release(place.bucket);
    Bucket& bucket = buckets_[place.bucket];
    const NDArray& own = worker_sums_.Sum(key, values, priority)[0];
    place.priority = priority;
    if (bucket.wire != Wire::kFloat32) {
      if (place.sum.empty() || !place.sum.SameView(own)) {
        place.sum = own;
        bucket.wire == Wire::kTwoBit ? PreparePacked(key, &place) : PrepareRounded(&place);
      }
      place.leave(priority);
    } else if (bucket.keys.size() == 1) {
      place.sum = own;
    } else {
      place.sum.CopyFrom(own, priority);
    }
    bucket.priority = priority;
    place.waits = true;
    ++bucket.summed;
    while (next_ < order_.size() && buckets_[order_[next_]].complete())
      Send(&buckets_[order_[next_++]]);
    if (next_ == order_.size()) next_ = 0;
    return {&place.sum, 1};
  }

  void Update(std::span<const KeySums> keys) override {
    // What a caller that has not summed all keys has left behind the next in order.
    for (size_t bucket : order_) {
      if (buckets_[bucket].complete()) Send(&buckets_[bucket]);
    }
    next_ = 0;
    waiting_.Add(keys);
    UpdateSummed();
    if (keys.size() == specs_.size()) PlanOrder(keys);
  }

  std::optional<int> OwnerOf(int key) override {
    if (!Shards()) return std::nullopt;
    if (owners_.empty()) PlanShards();
    return owners_.at(key);
  }
  std::map<int, NDArray> Residuals() const override { return residuals_; }

  void Barrier() override {
    for (size_t bucket = 0, n = buckets_.size(); bucket < n; ++bucket) {
      if (buckets_[bucket].summed > 0) Release(bucket);
    }
    UpdateSummed();
    ProcessStore::Barrier();
    group_->Barrier();
  }
  int rank() const override { return group_->rank(); }
  int num_workers() const override { return group_->size(); }

 protected:
  bool SumsInPlace(int key, size_t workers) const override {
    const auto place = places_.find(key);
    if (workers > 1 || place == places_.end()) return workers == 1;
    const Bucket& bucket = buckets_[place->second.bucket];
    return bucket.keys.size() == 1 || bucket.wire != Wire::kFloat32;
  }
  void Complete(int key) override {
    if (!waiting_.Contains(key)) return;
    Release(places_.at(key).bucket);
    UpdateSummed();
  }

 private:
  struct Bucket {
    Wire wire = Wire::kFloat32;    // kFloat32: as they are, of any type
    DType type = DType::kFloat32;  // on the wire
    std::vector<int> keys;
    int64_t summed = 0;  // of them, since they last travelled
    int priority = 0;    // of the last of them
    int64_t bytes = 0;   // of this rank, in the buffer
    NDArray buffer;      // empty: of a single key; kTwoBit: [ranks, bytes]
    std::shared_ptr<FlightTimes> times = std::make_shared<FlightTimes>();

    bool complete() const { return summed == std::ssize(keys); }
  };
  struct Place {
    size_t bucket = 0;
    int64_t offset = 0;  // in the buffer
    NDArray sum;         // in the buffer; if alone, rounded or packed: the gradient's own array
    bool waits = false;  // it was summed, and has not travelled
    int priority = 0;    // in this step
    // Push the way to the buffer and back, of a rounded or packed gradient.
    std::function<void(int priority)> leave, come_back;
  };
  // Values that travel together after their update.
  struct SharedValues {
    Parcel parcel;
    std::optional<ParcelArrays> arrays;  // nothing: of a single key
  };

  Wire WireOf(DType type) const { return type == DType::kFloat32 ? options_.wire : Wire::kFloat32; }
  DType TypeOnWire(DType type) const {
    const Wire wire = WireOf(type);
    return wire == Wire::kTwoBit     ? DType::kUint8
           : wire == Wire::kBfloat16 ? DType::kBfloat16
                                     : type;
  }
  int64_t BytesOnWire(const TensorSpec& spec) const {
    const int64_t elements = StoredElements(spec);
    return AlignedInBuffer(WireOf(spec.type) == Wire::kTwoBit
                               ? TwoBit::PackedBytes(elements)
                               : elements * SizeOf(TypeOnWire(spec.type)));
  }
  bool Shards() const { return options_.shard_states && group_->size() > 1; }

  void PlanBuckets() {
    size_t shared = SIZE_MAX;  // the bucket that is filled
    for (auto key = specs_.rbegin(); key != specs_.rend(); ++key) {
      const TensorSpec& spec = key->second;
      const Wire wire = WireOf(spec.type);
      const DType type = TypeOnWire(spec.type);
      const int64_t bytes = BytesOnWire(spec);
      const int64_t most = wire == Wire::kTwoBit ? kPackedBucketBytes : kBucketBytes;
      const bool alone = bytes >= most / 2;
      const bool fits = !alone && shared < buckets_.size() && buckets_[shared].wire == wire &&
                        buckets_[shared].type == type && buckets_[shared].bytes + bytes <= most;
      const size_t at = fits ? shared : buckets_.size();
      if (!fits) {
        buckets_.emplace_back().wire = wire;
        buckets_.back().type = type;
      }
      if (!alone) shared = at;
      Bucket& bucket = buckets_[at];
      Place& place = places_[key->first];
      place.bucket = at;
      place.offset = bucket.bytes;
      bucket.keys.push_back(key->first);
      bucket.bytes += bytes;
    }
    order_.resize(buckets_.size());
    std::iota(order_.begin(), order_.end(), size_t{0});
    std::sort(order_.begin(), order_.end(), [&](size_t a, size_t b) {  // as they become complete
      return buckets_[a].keys.back() > buckets_[b].keys.back();
    });
    for (Bucket& bucket : buckets_) {
      const bool as_is = bucket.wire == Wire::kFloat32, packed = bucket.wire == Wire::kTwoBit;
      if (as_is && bucket.keys.size() == 1) continue;
      const int64_t parts = packed ? group_->size() : 1;
      bucket.buffer = NDArray::Zeros(runtime_, TShape({parts * bucket.bytes / SizeOf(bucket.type)}),
                                     bucket.type, Values(bucket.keys[0])[0].ctx());
      for (int key : bucket.keys) {
        Place& place = places_.at(key);
        const TensorSpec& spec = specs_.at(key);
        if (as_is)
          place.sum = NDArray(bucket.buffer, place.offset, spec.shape, spec.type, spec.layout);
      }
    }
  }

  void PrepareRounded(Place* place) {
    const auto rounded = std::make_shared<RoundedGradient>(
        place->sum, buckets_[place->bucket].buffer, place->offset);
    place->leave = [rounded](int priority) { rounded->Leave(priority); };
    place->come_back = [rounded](int priority) { rounded->ComeBack(priority); };
  }

  void PreparePacked(int key, Place* place) {
    const Bucket& bucket = buckets_[place->bucket];
    const NDArray &gradient = place->sum, &residual = residuals_.at(key);
    const int64_t n = StoredElements(gradient.spec()), stride = bucket.bytes,
                  offset = place->offset;
    const auto pack = std::make_shared<Repeated>(
        runtime_,
        [two_bit = two_bit_, n, gradient, residual, buffer = bucket.buffer,
         at = rank() * stride + offset] {
          two_bit->Pack(gradient.data().dptr<float>(), residual.data().dptr<float>(), n,
                        buffer.data().dptr<uint8_t>() + at);
        },
        gradient, std::vector{residual.var(), bucket.buffer.var()}, "pack_gradient");
    const auto sum = std::make_shared<Repeated>(
        runtime_,
        [two_bit = two_bit_, n, gradient, buffer = bucket.buffer, stride, offset,
         ranks = group_->size()] {
          two_bit->Sum(buffer.data().dptr<uint8_t>() + offset, stride, ranks, n,
                       gradient.data().dptr<float>());
        },
        bucket.buffer, std::vector{gradient.var()}, "sum_packed");
    place->leave = [pack](int priority) { pack->Push(priority); };
    place->come_back = [sum](int priority) { sum->Push(priority); };
  }

  // Sends what has come, before the rest of the bucket has.
  void Release(size_t bucket) {
    if (buckets_[bucket].complete()) return Send(&buckets_[bucket]);
    for (size_t part : TakeApart(bucket)) {
      if (buckets_[part].complete()) Send(&buckets_[part]);
    }
  }

  // Into a bucket for each of its keys, of which the first takes its place.
  std::vector<size_t> TakeApart(size_t at) {
    const Bucket whole = std::exchange(buckets_[at], {});
    std::vector<size_t> parts{at};
    while (parts.size() < whole.keys.size()) {
      parts.push_back(buckets_.size());
      order_.push_back(buckets_.size());
      buckets_.emplace_back();
    }
    for (size_t k = 0; k < parts.size(); ++k) {
      const int key = whole.keys[k];
      Place& place = places_.at(key);
      place.bucket = parts[k];
      Bucket& bucket = buckets_[place.bucket];
      bucket.wire = whole.wire;
      bucket.type = whole.type;
      bucket.keys = {key};
      bucket.summed = place.waits ? 1 : 0;
      bucket.priority = place.priority;
      bucket.bytes = BytesOnWire(specs_.at(key));
      if (whole.wire == Wire::kFloat32) continue;  // `sum`, which is in the whole's buffer for now
      GiveBuffer(&bucket, whole, std::exchange(place.offset, 0), place.waits);
      if (place.sum.empty()) continue;
      whole.wire == Wire::kTwoBit ? PreparePacked(key, &place) : PrepareRounded(&place);
    }
    return parts;
  }

  // Of the key at `offset` of a bucket; with what has been written there, if it `waits`.
  void GiveBuffer(Bucket* bucket, const Bucket& whole, int64_t offset, bool waits) {
    if (whole.wire == Wire::kBfloat16) {
      bucket->buffer = NDArray(whole.buffer, offset, TShape({bucket->bytes / SizeOf(whole.type)}),
                               whole.type, {});
      return;
    }
    bucket->buffer =
        NDArray::Zeros(runtime_, TShape({group_->size() * bucket->bytes}), bucket->type);
    if (!waits) return;
    const TShape shape({bucket->bytes});
    NDArray(bucket->buffer, rank() * bucket->bytes, shape, bucket->type, {})
        .CopyFrom(NDArray(whole.buffer, rank() * whole.bytes + offset, shape, whole.type, {}));
  }

  void Send(Bucket* bucket) {
    bucket->summed = 0;
    for (int key : bucket->keys) places_.at(key).waits = false;
    if (bucket->wire == Wire::kTwoBit) {
      AllGather(group_, bucket->buffer, bucket->priority, bucket->times);
    } else {
      AllReduce(group_, bucket->buffer.empty() ? places_.at(bucket->keys[0]).sum : bucket->buffer,
                bucket->priority, bucket->times);
    }
    if (bucket->wire == Wire::kFloat32) return;
    for (int key : bucket->keys) {
      const Place& place = places_.at(key);
      place.come_back(place.priority);
    }
  }

  // Of keys whose sums wait no more.
  void UpdateSummed() {
    const std::span<const KeySums> keys =
        waiting_.Take([this](int key) { return places_.at(key).waits; });
    Shards() ? UpdateOwn(keys) : ProcessStore::Update(keys);
  }

  // After some updates of all keys: by the times of rank 0. A rank whose sums have failed takes
  // part before it says so: the others do not wait for it, and its order stays theirs.
  void PlanOrder(std::span<const KeySums> keys) {
    if (++updates_ != plan_after_) return;
    plan_after_ *= kPlansApart;
    std::exception_ptr failure;
    for (const KeySums& key : keys) {
      try {
        key.sums[0].WaitToRead();
      } catch (...) {
        if (!failure) failure = std::current_exception();
      }
    }
    if (!failure || !group_->failed()) AgreeOnOrder();
    if (failure) std::rethrow_exception(failure);
  }

  void AgreeOnOrder() {
    std::ostringstream planned;
    if (group_->first()) {
      for (size_t bucket : SendOrder(Timings())) planned << bucket << ' ';
    }
    std::istringstream read(group_->BroadcastText(planned.str()));
    for (size_t& bucket : order_) read >> bucket;
  }

  // Each bucket is taken to need its part, by its bytes, of the time in which any travelled.
  std::vector<BucketTiming> Timings() const {
    std::vector<BucketTiming> timings;
    int64_t free = 0, busy = 0, bytes = 0;
    for (size_t at : order_) {
      const FlightTimes& times = *buckets_[at].times;
      const int64_t begun = std::max(times.ready.load(), free);
      free = std::max(times.done.load(), begun);
      busy += free - begun;
      bytes += buckets_[at].bytes;
    }
    const double per_byte = static_cast<double>(busy) / static_cast<double>(bytes);
    for (const Bucket& bucket : buckets_) {
      timings.push_back(
          {.ready = bucket.times->ready,
           .transfer = static_cast<int64_t>(per_byte * static_cast<double>(bucket.bytes)),
           .first_key = bucket.keys.back()});
    }
    return timings;
  }

  void UpdateOwn(std::span<const KeySums> keys) {
    own_.clear();
    std::set<int> updated;
    for (const KeySums& key : keys) {
      updated.insert(key.key);
      if (OwnerOf(key.key) == rank()) own_.push_back(key);
    }
    ProcessStore::Update(own_);
    for (const SharedValues& shared : shared_) {
      const std::vector<int>& together = shared.parcel.keys;
      const auto is_updated = [&](int key) { return updated.contains(key); };
      if (std::all_of(together.begin(), together.end(), is_updated)) {
        Send(shared);
        continue;
      }
      for (int key : together) {
        if (is_updated(key))
          Broadcast(group_, Values(key)[0], shared.parcel.owner, places_.at(key).priority);
      }
    }
  }

  void PlanShards() {
    owners_ = PlanOwners(specs_, group_->size());
    for (const Parcel& parcel : PlanParcels(specs_, owners_)) {
      shared_.push_back({parcel, {}});
      if (parcel.keys.size() > 1) shared_.back().arrays.emplace(runtime_, parcel, specs_);
    }
  }

  // From the rank that has updated them.
  void Send(const SharedValues& shared) {
    const auto& [parcel, arrays] = shared;
    const int priority = places_.at(parcel.keys.back()).priority;
    if (!arrays) return Broadcast(group_, Values(parcel.keys[0])[0], parcel.owner, priority);
    const bool here = parcel.owner == rank();
    const auto copy = [&, &keys = parcel.keys, &parts = arrays->parts] {
      for (size_t i = 0; i < keys.size(); ++i) {
        NDArray value = Values(keys[i])[0], part = parts[i];
        here ? part.CopyFrom(value, priority) : value.CopyFrom(part, priority);
      }
    };
    if (here) copy();
    Broadcast(group_, arrays->whole, parcel.owner, priority);
    if (!here) copy();
  }

  const std::shared_ptr<ProcessGroup> group_;
  const DistOptions options_;
  const std::shared_ptr<const TwoBit> two_bit_;  // shared with pushed functions
  WorkerSums worker_sums_;
  std::map<int, TensorSpec> specs_;
  std::map<int, NDArray> residuals_;  // of kTwoBit, in the layouts of the gradients
  std::vector<Bucket> buckets_;       // planned by the first sum
  std::vector<size_t> order_;         // in which they travel
  size_t next_ = 0;                   // of the order
  int64_t updates_ = 0, plan_after_ = kFirstPlan;
  std::map<int, Place> places_;
  std::map<int, int> owners_;         // of sharded states
  std::vector<SharedValues> shared_;  // in the order in which they travel
  WaitingUpdates waiting_;
  std::vector<KeySums> own_;  // of one update
};

}  // namespace

std::unique_ptr<KVStore> NewKVStoreDist(Runtime& runtime, std::shared_ptr<ProcessGroup> group,
                                        const DistOptions& options) {
  return std::make_unique<KVStoreDist>(runtime, std::move(group), options);
}

}  // namespace mxtrain
