// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/kvstore/loss_scale.h"

#include <algorithm>
#include <cmath>

#include "mxtrain/operator/loss_scale.h"

namespace mxtrain {

LossScale::LossScale(Runtime& runtime, const std::vector<Context>& devices,
                     const std::vector<NDArray>& of_workers, const LossScaleState& first) {
  for (const Context device : devices)
    devices_.push_back(
        {NDArray(runtime, TShape{kLossScaleNumbers}, DType::kFloat32, device), {}, {}});
  for (const NDArray& scale : of_workers) {
    const auto own = std::find(devices.begin(), devices.end(), scale.ctx());
    devices_[own == devices.end() ? 0 : static_cast<size_t>(own - devices.begin())]
        .scales.push_back(scale);
  }
  Write(first);
}

double LossScale::First(double rescale_grad) {
  constexpr double kOfMeans = 1 << 16;
  return std::clamp<double>(std::exp2(std::round(std::log2(kOfMeans * rescale_grad))),
                            kLowestLossScale, kHighestLossScale);
}

void LossScale::Update(size_t device, const NDArray& sums, const NDArray& scalars) {
  Device& d = devices_[device];
  const NDArray in[] = {sums, scalars};
  if (!d.update || !d.update->Takes(in)) {
    const NDArray numbers[] = {d.state, d.scales[0]};
    d.update.emplace("_loss_scale_update", in, std::span(&scalars, 1), OpReqType::kWriteInplace,
                     Kwargs{}, numbers);
  }
  d.update->Push(0);
  for (size_t w = 1; w < d.scales.size(); ++w) d.scales[w].CopyFrom(d.scales[0]);
}

LossScaleState LossScale::Read() const {
  const std::vector<float> numbers = devices_[0].state.ToVector();
  const auto count = [&](LossScaleNumber which) { return static_cast<int64_t>(numbers[which]); };
  return {numbers[kLossScaleValue], count(kLossScaleGood), count(kLossScaleSkipped),
          count(kLossScaleAtLowest)};
}

void LossScale::Write(const LossScaleState& state) {
  std::vector<float> numbers(kLossScaleNumbers);
  numbers[kLossScaleValue] = static_cast<float>(state.scale);
  numbers[kLossScaleGood] = static_cast<float>(state.good_steps);
  numbers[kLossScaleSkipped] = static_cast<float>(state.steps_skipped);
  numbers[kLossScaleAtLowest] = static_cast<float>(state.at_lowest);
  for (Device& device : devices_) {
    device.state.CopyFromHost(numbers.data(), static_cast<int64_t>(numbers.size() * sizeof(float)));
    for (NDArray& scale : device.scales) scale.Fill(state.scale);
  }
}

}  // namespace mxtrain
