#include "mxtrain/train/weight_average.h"

#include <algorithm>

#include "mxtrain/base/error.h"
#include "mxtrain/optimizer/optimizer.h"

namespace mxtrain {

// sgd_update gives w (1 - lr wd) - lr scale g: with lr = 1 - d, wd = 1 and scale = -1 that is d w + (1 - d) g.
WeightAverage::WeightAverage(Runtime& runtime, double decay, const std::map<std::string, NDArray>& values)
    : runtime_(runtime),
      decay_(decay),
      scalars_(runtime, TShape{kNumScalars}, DType::kFloat32, values.empty() ? Context::cpu() : values.begin()->second.ctx(), "average scalars") {
  for (const auto& [name, value] : values) {
    const NDArray average = NDArray::Zeros(runtime, value.shape(), value.dtype(), value.ctx(), value.layout());
    const NDArray in[] = {average, value, scalars_.array()};
    items_.push_back({name, value, average, PreparedCall("sgd_update", in, std::span(&average, 1), OpReqType::kWriteInplace, {}, {})});
  }
}

void WeightAverage::Update() {
  const double t = static_cast<double>(updates_++), d = std::min(decay_, t / (t + 9));
  const engine::VarHandle writes[] = {scalars_.host().var()};
  runtime_.engine().PushSync(
      [this, rate = static_cast<float>(1 - d)](RunContext) {
        float* scalars = scalars_.host().data().dptr<float>();
        scalars[kScalarLr] = rate;
        scalars[kScalarWeightDecay] = 1;
        scalars[kScalarRescale] = -1;
        scalars[kScalarCorrection] = 1;
      },
      {}, writes, {.name = "average_scalars"});
  scalars_.Upload();
  for (const Item& item : items_) item.update.Push(/*priority=*/0);
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

void WeightAverage::Restore(const std::map<std::string, NDArray>& saved, int64_t updates) {
  for (Item& item : items_) {
    const auto found = saved.find(item.name);
    if (found == saved.end() || !(found->second.shape() == item.average.shape())) {
      Throw(ErrorKind::kConfig, "the checkpoint has no average of '{}' in the shape of the net: it belongs to another net, or froze it", item.name);
    }
    item.average.CopyFrom(found->second);
  }
  updates_ = updates;
}

}  // namespace mxtrain
