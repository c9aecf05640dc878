// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/kvstore/collectives.h"

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

struct PreparedAllReduce::Places {
  Mutex mutex;
  std::deque<int64_t> reserved MXTRAIN_GUARDED_BY(mutex);

  void Add(int64_t place) {
    MutexLock lock(mutex);
    reserved.push_back(place);
  }
  int64_t Take() {
    MutexLock lock(mutex);
    MXTRAIN_ASSERT(!reserved.empty());
    const int64_t place = reserved.front();
    reserved.pop_front();
    return place;
  }
};

PreparedAllReduce::PreparedAllReduce(std::shared_ptr<ProcessGroup> group, const NDArray& array)
    : group_(std::move(group)), array_(array), places_(std::make_shared<Places>()) {
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

void Broadcast(const std::shared_ptr<ProcessGroup>& group, NDArray array) {
  RequireHost(array);
  const engine::VarHandle var = array.var();
  array.runtime().engine().PushAsync(
      [group, array, place = group->Reserve()](RunContext, engine::Callback done) {
        group->Start(place, OverAll(Collective::Kind::kBroadcast, array.data(), array.spec()),
                     Finish(std::move(done)));
      },
      {}, {&var, 1}, {.property = engine::FnProperty::kComm, .name = "broadcast"});
}

}  // namespace mxtrain
