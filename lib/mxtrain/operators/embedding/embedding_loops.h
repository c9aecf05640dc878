// SPDX-License-Identifier: Apache-2.0
#pragma once
// Embedding gathers rows of its weight.
#include "mxtrain/operator/gather_op.h"
#include "mxtrain/operators/embedding/embedding.h"

namespace mxtrain {

struct EmbeddingSetup : GatherSetup {
  static constexpr const char* kName = "Embedding";
  static constexpr size_t kData = EmbeddingProperty::kWeight, kIndices = EmbeddingProperty::kData;
  static constexpr bool kRepeats = true;

  explicit EmbeddingSetup(const EmbeddingParam&) {}
  RowGrid GridOf(const TShape& weight, const TShape& data) const {
    return {1, data.Size(), weight[1]};
  }
  int64_t RowsOf(const TShape& weight, const TShape&) const { return weight[0]; }
  TakePlaces PlacesOf(const TShape& weight, const TBlob& data) const {
    return {{NumberReader(data), weight[0], kIndexClip}};
  }
};

}  // namespace mxtrain

MXTRAIN_KERNELS(embedding, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(GatherKernel<EmbeddingSetup, EmbeddingProperty, Device>());
}
