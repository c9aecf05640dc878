// SPDX-License-Identifier: Apache-2.0
#include "app/inference/tiled_predictions.h"

namespace mxtrain::inference {

std::vector<std::unique_ptr<tasks::HeadPrediction>> TiledPredictions::Add(
    const tasks::Example& example, const std::vector<std::span<const float>>& values) {
  if (tiles_.Add(*example.tile())) {
    joined_.clear();
    for (const PredictedHead& head : heads_) joined_.push_back(head.predictor->Join());
  }
  for (size_t i = 0; i < heads_.size(); ++i) joined_[i]->Add(values[i], example);
  std::vector<std::unique_ptr<tasks::HeadPrediction>> predictions;
  if (!tiles_.complete()) return predictions;
  for (const auto& joined : joined_) predictions.push_back(joined->Take());
  return predictions;
}

}  // namespace mxtrain::inference
