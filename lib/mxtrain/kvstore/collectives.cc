// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/kvstore/collectives.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "mxtrain/base/clock.h"
#include "mxtrain/base/error.h"

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

// collective: of the array, once it can be read.
template <typename CollectiveOf>
void Push(const std::shared_ptr<ProcessGroup>& group, NDArray array, int priority, const char* name,
          const CollectiveOf& collective, std::shared_ptr<FlightTimes> times = nullptr) {
  RequireHost(array);
  const engine::VarHandle var = array.var();
  engine::Engine& engine = array.runtime().engine();
  engine.PushAsync(
      [group, array = std::move(array), collective, times = std::move(times),
       place = group->Reserve()](RunContext, engine::Callback done) mutable {
        if (times) times->ready = SteadyNanoseconds();
        group->Start(
            std::move(place), collective(array),
            [times = std::move(times), done = std::move(done)](std::exception_ptr error) mutable {
              if (times) times->done = SteadyNanoseconds();
              done(std::move(error));
            });
      },
      {}, {&var, 1}, {.property = engine::FnProperty::kComm, .priority = priority, .name = name});
}

}  // namespace

void SumOverParts(const std::shared_ptr<ProcessGroup>& group, std::vector<NDArray> of_workers) {
  std::vector<engine::VarHandle> vars;
  for (const NDArray& array : of_workers) {
    RequireHost(array);
    MXTRAIN_ASSERT(array.dtype() == DType::kFloat64 && array.shape() == of_workers[0].shape());
    vars.push_back(array.var());
  }
  std::optional<ProcessGroup::Place> place;
  if (group) place.emplace(group->Reserve());
  of_workers[0].runtime().engine().PushAsync(
      [group, arrays = of_workers, place = std::move(place)](RunContext,
                                                             engine::Callback done) mutable {
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
        group->Start(std::move(*place),
                     OverAll(Collective::Kind::kAllReduce, arrays[0].data(), arrays[0].spec()),
                     std::move(finish));
      },
      {}, vars, {.property = engine::FnProperty::kComm, .name = "sum_over_parts"});
}

void AllReduce(const std::shared_ptr<ProcessGroup>& group, NDArray array, int priority,
               std::shared_ptr<FlightTimes> times) {
  const auto sum = [](const NDArray& whole) {
    return OverAll(Collective::Kind::kAllReduce, whole.data(), whole.spec());
  };
  Push(group, std::move(array), priority, "all_reduce", sum, std::move(times));
}

void Broadcast(const std::shared_ptr<ProcessGroup>& group, NDArray array, int root, int priority) {
  if (array.ctx().type == DeviceType::kGPU) {
    const NDArray host = array.ToHost();
    Broadcast(group, host, root, priority);
    return array.CopyFrom(host, priority);
  }
  Push(group, std::move(array), priority, "broadcast", [root](const NDArray& whole) {
    Collective broadcast = OverAll(Collective::Kind::kBroadcast, whole.data(), whole.spec());
    broadcast.root = root;
    return broadcast;
  });
}

void AllGather(const std::shared_ptr<ProcessGroup>& group, NDArray array, int priority,
               std::shared_ptr<FlightTimes> times) {
  const auto parts = [ranks = group->size()](const NDArray& whole) {
    Collective gather = OverAll(Collective::Kind::kAllGather, whole.data(), whole.spec());
    gather.n /= ranks;
    return gather;
  };
  Push(group, std::move(array), priority, "all_gather", parts, std::move(times));
}

}  // namespace mxtrain
