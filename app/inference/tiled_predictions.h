// SPDX-License-Identifier: Apache-2.0
#pragma once
// Predictions for images that the net reads in tiles (io/tiles.h).
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "app/inference/prediction_sinks.h"
#include "app/tasks/prediction.h"
#include "app/tasks/tile_count.h"

namespace mxtrain::inference {

// Collects the tiles of one image after the other. An image of which a tile is missing, since it
// could not be read, is not predicted. Not thread-safe; the heads outlive it.
class TiledPredictions {
 public:
  explicit TiledPredictions(const std::vector<PredictedHead>& heads) : heads_(heads) {}

  // `values`: of each head, for the tile that the example is. Returns the predictions of the heads
  // after the last tile of an image, else none.
  std::vector<std::unique_ptr<tasks::HeadPrediction>> Add(
      const tasks::Example& example, const std::vector<std::span<const float>>& values);

 private:
  const std::vector<PredictedHead>& heads_;
  tasks::TileCount tiles_;
  std::vector<std::unique_ptr<tasks::JoinedPrediction>> joined_;
};

}  // namespace mxtrain::inference
