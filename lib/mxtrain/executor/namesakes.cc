// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/executor/internal/namesakes.h"

#include <algorithm>

#include "mxtrain/base/mutex.h"
#include "mxtrain/base/philox.h"
#include "mxtrain/executor/internal/drawn_as.h"
#include "mxtrain/ndarray/runtime.h"

namespace mxtrain::executor {
namespace {

// The nets that were bound in a Runtime since its random numbers were seeded.
class BoundNets {
 public:
  explicit BoundNets(Runtime& runtime) : since_seed_(runtime.resources()) {
    since_seed_.set_step(1);
  }

  int Next(uint64_t stream) {
    const MutexLock lock(mutex_);
    if (since_seed_.step() == 0) {  // a new seed restarts all
      since_seed_.set_step(1);
      nets_.clear();
    }
    return nets_[stream]++;
  }

 private:
  Mutex mutex_;
  RandomSteps since_seed_ MXTRAIN_GUARDED_BY(mutex_);
  std::map<uint64_t, int> nets_ MXTRAIN_GUARDED_BY(mutex_);  // by stream of a name
};

}  // namespace

const std::string& DrawnAs(const ExecGraph& graph, const ExecNode& node) {
  const ExecNode& drawing = node.forward >= 0 ? graph.nodes[node.forward] : node;
  const auto part = drawing.attrs.find(kDrawnAs);
  return part == drawing.attrs.end() ? drawing.name : part->second;
}

Namesakes NumberNamesakes(Runtime& runtime, const ExecGraph& graph, const MemoryPlan& plan,
                          const BindRequest& request, const Namesakes* shared) {
  const std::shared_ptr<void> extension =
      runtime.Extension("bound nets", [&runtime] { return std::make_shared<BoundNets>(runtime); });
  BoundNets& bound = *static_cast<BoundNets*>(extension.get());
  Namesakes numbers;
  for (size_t id = 0; id < graph.nodes.size(); ++id) {
    const std::vector<int>& temps = plan.temp_space_of[id];
    if (std::find(temps.begin(), temps.end(), MemoryPlan::kNoTempSpace) == temps.end()) continue;
    const uint64_t stream =
        StreamOf(DrawnAs(graph, graph.nodes[id]), static_cast<uint64_t>(request.replica));
    if (numbers.contains(stream)) continue;
    const bool known = shared && shared->contains(stream);
    numbers[stream] = request.namesake ? *request.namesake
                      : known          ? shared->at(stream)
                                       : bound.Next(stream);
  }
  return numbers;
}

}  // namespace mxtrain::executor
