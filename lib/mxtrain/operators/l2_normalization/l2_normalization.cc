// SPDX-License-Identifier: Apache-2.0
// L2Normalization: x / sqrt(sum of x^2 + eps) over a whole sample (instance), over its channels at
// each place (channel), or over the places of each channel (spatial).
#include <cmath>

#include "mxtrain/operator/composite.h"

namespace mxtrain {
namespace {

enum Mode : int { kInstance, kChannel, kSpatial };

struct L2NormalizationParam : Parameter<L2NormalizationParam> {
  double eps;
  int mode;
  static void Declare(Fields<L2NormalizationParam>& f) {
    f.Add("eps", &L2NormalizationParam::eps).Default(1e-10).Range(0).Help("added to the sum");
    f.Add("mode", &L2NormalizationParam::mode)
        .Enum({{"instance", kInstance}, {"channel", kChannel}, {"spatial", kSpatial}})
        .Default(kInstance)
        .Help("over a sample; over axis 1; over the axes after 1");
  }
};

void CompleteL2Normalization(const L2NormalizationParam& param, std::vector<TShape>* in) {
  const TShape& data = (*in)[0];
  const int least = param.mode == kSpatial ? 3 : 2;
  if (data.has_rank() && data.ndim() < least) {
    Throw(ErrorKind::kConfig, "L2Normalization: data has shape {}; this mode needs {} axes or more",
          data.ToString(), least);
  }
}

void LowerL2Normalization(const L2NormalizationParam& param, Lowering& g) {
  std::vector<int64_t> axes;
  for (int i = param.mode == kSpatial ? 2 : 1; i < g.shape(0).ndim(); ++i) axes.push_back(i);
  if (param.mode == kChannel) axes = {1};
  const auto x = g.argument(0);
  // By the hypotenuse of the norm and the root of eps: squares would overflow 16 bits.
  const auto norm = g("norm", {x}, {{"axis", params::Print(TShape(axes))}, {"keepdims", "1"}});
  const auto safe = g.WithScalar("_hypot_scalar", norm, std::sqrt(param.eps));
  g.SetOutput(0, g("broadcast_div", {x, safe}));
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(l2_normalization, registry) {
  using namespace mxtrain;
  AddComposite<L2NormalizationParam>(
      registry, {.name = "L2Normalization",
                 .description = "divides by the Euclidean norm of a sample, its channels or places",
                 .complete = CompleteL2Normalization,
                 .lower = LowerL2Normalization});
}
