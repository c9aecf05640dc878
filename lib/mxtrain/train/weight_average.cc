// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/train/internal/weight_average.h"

#include <algorithm>
#include <set>

#include "mxtrain/base/error.h"
#include "mxtrain/optimizer/optimizer.h"

namespace mxtrain {

WeightAverage::WeightAverage(Runtime& runtime, double decay,
                             const std::map<std::string, NDArray>& values)
    : runtime_(runtime),
      decay_(decay),
      scalars_(runtime, TShape{static_cast<int64_t>(values.size()), kNumScalars}, DType::kFloat32,
               values.empty() ? Context::cpu() : values.begin()->second.ctx(), "average scalars") {
  std::set<DType> types;
  for (const auto& [name, value] : values) {
    items_.push_back(
        {name, value,
         NDArray::Zeros(runtime, value.shape(), value.dtype(), value.ctx(), value.layout())});
    types.insert(value.dtype());
  }
  for (const DType type : types) updates_of_types_.push_back(UpdateOf(type));
}

// sgd_update gives w (1 - lr wd) - lr scale g: with lr = 1 - d, wd = 1 and scale = -1 that is d w +
// (1 - d) g.
PreparedCall WeightAverage::UpdateOf(DType type) const {
  std::vector<NDArray> averages, values;
  for (const Item& item : items_) {
    if (item.value.dtype() != type) continue;
    averages.push_back(item.average);
    values.push_back(item.value);
  }
  const auto count = static_cast<int64_t>(averages.size());
  const NDArray rows = scalars_.array().Slice(0, count);
  std::vector<NDArray> in = averages;
  in.insert(in.end(), values.begin(), values.end());
  in.push_back(count == 1 ? rows.Reshape(TShape{kNumScalars}) : rows);
  return {"sgd_update",
          in,
          averages,
          OpReqType::kWriteInplace,
          {{"num_weights", std::to_string(count)}},
          {}};
}

void WeightAverage::Update() {
  const double t = static_cast<double>(updates_++), d = std::min(decay_, t / (t + 9));
  const engine::VarHandle writes[] = {scalars_.host().var()};
  runtime_.engine().PushSync(
      [host = scalars_.host().data().dptr<float>(), rows = items_.size(),
       rate = static_cast<float>(1 - d)](RunContext) {
        for (size_t row = 0; row < rows; ++row) {
          float* scalars = host + row * kNumScalars;
          scalars[kScalarLr] = rate;
          scalars[kScalarWeightDecay] = 1;
          scalars[kScalarRescale] = -1;
          scalars[kScalarCorrection] = 1;
        }
      },
      {}, writes, {.name = "average_scalars", .renews = writes});
  scalars_.Upload();
  for (const PreparedCall& update : updates_of_types_) update.Push(/*priority=*/0);
}

void WeightAverage::Exchange() {
  for (Item& item : items_) {
    const NDArray value = item.value.Copy(item.value.ctx());
    item.value.CopyFrom(item.average);
    item.average.CopyFrom(value);
  }
}

std::map<std::string, NDArray> WeightAverage::Arrays() const {
  std::map<std::string, NDArray> arrays;
  for (const Item& item : items_) arrays[item.name] = item.average;
  return arrays;
}

void WeightAverage::Restore(const std::map<std::string, NDArray>& saved, int64_t updates,
                            bool may_lack) {
  for (Item& item : items_) {
    const auto found = saved.find(item.name);
    if (found == saved.end() && may_lack) {
      item.average.CopyFrom(item.value);
      continue;
    }
    if (found == saved.end() || !(found->second.shape() == item.average.shape())) {
      Throw(ErrorKind::kConfig,
            "the checkpoint has no average of '{}' in the shape of the net: it belongs to another "
            "net, or froze it",
            item.name);
    }
    item.average.CopyFrom(found->second);
  }
  updates_ = updates;
}

}  // namespace mxtrain
