#pragma once
// _BatchNormReLU: BatchNorm followed by max(0, x), as the fusion pass makes it. Parameters, arrays and moving averages are those of
// BatchNorm; instead of the output, backward reads a mask that forward saves.
#include "mxtrain/operators/batch_norm/batch_norm.h"

namespace mxtrain {

class BatchNormReLUProperty final : public BatchNormProperty {
 public:
  std::string TypeString() const override { return "_BatchNormReLU"; }
  std::string Description() const override { return "BatchNorm and ReLU in one pass (made by the fusion pass)"; }
};

}  // namespace mxtrain
