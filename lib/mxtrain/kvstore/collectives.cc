// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/kvstore/collectives.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "mxtrain/base/error.h"
#include "mxtrain/base/mutex.h"

namespace mxtrain {
namespace {

void RequireHost(const NDArray& array) {
  if (array.ctx().type != DeviceType::kGPU) return;
  Throw(ErrorKind::kConfig,
        "'{}' is on {}: collectives between processes need arrays in host memory", array.who(),
        array.ctx().ToString());
}

// Whole arrays, padding included.
Collective OverAll(Collective::Kind kind, const TBlob& blob, const TensorSpec& spec) {
  return {
      .kind = kind, .data = blob.data, .n = spec.Bytes() / SizeOf(spec.type), .type = spec.type};
}

ProcessGroup::Done Finish(engine::Callback done) {
  return [done = std::move(done)](std::exception_ptr error) mutable { done(std::move(error)); };
}

}  // namespace

class ReservedPlaces {
 public:
  void Add(int64_t place) {
    MutexLock lock(mutex_);
    reserved_.push_back(place);
  }
  int64_t Take() {
    MutexLock lock(mutex_);
    MXTRAIN_ASSERT(!reserved_.empty());
    const int64_t place = reserved_.front();
    reserved_.pop_front();
    return place;
  }

 private:
  Mutex mutex_;
  std::deque<int64_t> reserved_ MXTRAIN_GUARDED_BY(mutex_);
};

PreparedAllReduce::PreparedAllReduce(std::shared_ptr<ProcessGroup> group, const NDArray& array)
    : group_(std::move(group)), array_(array), places_(std::make_shared<ReservedPlaces>()) {
  RequireHost(array);
  const engine::VarHandle var = array.var();
  // Pushes run in their order, since each writes the array.
  all_reduce_ = array.runtime().engine().NewOperator(
      [group = group_, places = places_, array](RunContext, engine::Callback done) {
        group->Start(places->Take(),
                     OverAll(Collective::Kind::kAllReduce, array.data(), array.spec()),
                     Finish(std::move(done)));
      },
      {}, {&var, 1}, {.property = engine::FnProperty::kComm, .name = "all_reduce"});
}

PreparedAllReduce::~PreparedAllReduce() {
  array_.runtime().engine().DeleteOperator(all_reduce_);
}

void PreparedAllReduce::Push(int priority) {
  places_->Add(group_->Reserve());
  array_.runtime().engine().Push(all_reduce_, priority);
}

PreparedPartSum::PreparedPartSum(std::shared_ptr<ProcessGroup> group,
                                 std::vector<NDArray> of_workers)
    : group_(std::move(group)),
      arrays_(std::move(of_workers)),
      places_(std::make_shared<ReservedPlaces>()) {
  std::vector<engine::VarHandle> vars;
  for (const NDArray& array : arrays_) {
    RequireHost(array);
    MXTRAIN_ASSERT(array.dtype() == DType::kFloat64 && array.shape() == arrays_[0].shape());
    vars.push_back(array.var());
  }
  sum_ = arrays_[0].runtime().engine().NewOperator(
      [group = group_, places = places_, arrays = arrays_](RunContext, engine::Callback done) {
        double* const sum = arrays[0].data().dptr<double>();
        const int64_t n = arrays[0].shape().Size();
        for (size_t w = 1; w < arrays.size(); ++w) {
          const double* part = arrays[w].data().dptr<double>();
          for (int64_t i = 0; i < n; ++i) sum[i] += part[i];
        }
        auto finish = [arrays, sum, n, done = std::move(done)](std::exception_ptr e) mutable {
          for (size_t w = 1; w < arrays.size(); ++w)
            std::copy_n(sum, n, arrays[w].data().dptr<double>());
          done(std::move(e));
        };
        if (!group) return finish(nullptr);
        group->Start(places->Take(),
                     OverAll(Collective::Kind::kAllReduce, arrays[0].data(), arrays[0].spec()),
                     std::move(finish));
      },
      {}, vars, {.property = engine::FnProperty::kComm, .name = "sum_over_parts"});
}

PreparedPartSum::~PreparedPartSum() {
  arrays_[0].runtime().engine().DeleteOperator(sum_);
}

void PreparedPartSum::Push() {
  if (group_) places_->Add(group_->Reserve());
  arrays_[0].runtime().engine().Push(sum_, 0);
}

void Broadcast(const std::shared_ptr<ProcessGroup>& group, NDArray array, int root, int priority) {
  RequireHost(array);
  const engine::VarHandle var = array.var();
  array.runtime().engine().PushAsync(
      [group, array, root, place = group->Reserve()](RunContext, engine::Callback done) {
        Collective broadcast = OverAll(Collective::Kind::kBroadcast, array.data(), array.spec());
        broadcast.root = root;
        group->Start(place, broadcast, Finish(std::move(done)));
      },
      {}, {&var, 1},
      {.property = engine::FnProperty::kComm, .priority = priority, .name = "broadcast"});
}

void AllGather(const std::shared_ptr<ProcessGroup>& group, NDArray array, int priority) {
  RequireHost(array);
  const engine::VarHandle var = array.var();
  array.runtime().engine().PushAsync(
      [group, array, place = group->Reserve()](RunContext, engine::Callback done) {
        Collective gather = OverAll(Collective::Kind::kAllGather, array.data(), array.spec());
        gather.n /= group->size();
        group->Start(place, gather, Finish(std::move(done)));
      },
      {}, {&var, 1},
      {.property = engine::FnProperty::kComm, .priority = priority, .name = "all_gather"});
}

}  // namespace mxtrain
