#include "mxtrain/operators/batch_norm_relu/batch_norm_relu.h"

#include <algorithm>

namespace mxtrain {
namespace {

// The parameters of the fused operator; nullopt when the activation is no ReLU or the statistics are shown.
std::optional<Kwargs> Fuse(std::span<const OperatorProperty* const> chain) {
  const Kwargs activation = chain[1]->GetParams();
  const bool relu =
      std::find(activation.begin(), activation.end(), std::pair<std::string, std::string>("act_type", "relu")) != activation.end();
  if (!relu || chain[0]->NumVisibleOutputs() != 1) return std::nullopt;
  return chain[0]->GetParams();
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(batch_norm_relu, registry) {
  registry.AddProperty("_BatchNormReLU", {}, [] { return std::make_unique<mxtrain::BatchNormReLUProperty>(); });
  registry.AddPattern({"batch_norm+relu", {"BatchNorm", "Activation"}, "_BatchNormReLU", true, true, mxtrain::Fuse});
}
