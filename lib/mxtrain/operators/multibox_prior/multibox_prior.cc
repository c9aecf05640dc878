// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/multibox_prior/multibox_prior.h"

#include "mxtrain/operator/registry.h"

namespace mxtrain {

void MultiBoxPriorParam::Declare(Fields<MultiBoxPriorParam>& f) {
  using P = MultiBoxPriorParam;
  f.Add("sizes", &P::sizes).Default({1}).RangeAbove(0).Help("heights, in shares of the image's");
  f.Add("ratios", &P::ratios).Default({1}).RangeAbove(0).Help("widths over heights");
  f.Add("clip", &P::clip).Default(false).Help("anchors end at the edges of the image");
  f.Add("steps", &P::steps)
      .Default({-1, -1})
      .Help("distance of the cells (y, x), in shares of the image; not above 0: 1 / H, 1 / W");
  f.Add("offsets", &P::offsets)
      .Default({0.5, 0.5})
      .Range(0, 1)
      .Help("where in a cell (y, x) its anchors have their center");
}

void MultiBoxPriorProperty::Check() {
  const auto fail = [&](const char* name, const std::vector<double>& given, const char* expected) {
    Throw(ErrorKind::kConfig, "{}: {} = {}: expected {}", TypeString(), name, params::Print(given),
          expected);
  };
  if (param_.sizes.empty()) fail("sizes", param_.sizes, "one or more numbers");
  if (param_.ratios.empty()) fail("ratios", param_.ratios, "one or more numbers");
  if (param_.offsets.size() != 2) fail("offsets", param_.offsets, "two numbers, of y and x");
  if (param_.steps.size() != 2 || param_.steps[0] * param_.steps[1] < 0)
    fail("steps", param_.steps, "two numbers, of y and x, both above 0 or neither");
}

bool MultiBoxPriorProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                       std::vector<TShape>*) const {
  const TShape& data = (*in)[0];
  if (!data.has_rank()) return false;
  if (data.ndim() <= kWidth || data[kHeight] == 0 || data[kWidth] == 0) {
    Throw(ErrorKind::kConfig, "{}: the data have shape {}; expected [images, channels, H, W]",
          TypeString(), data.ToString());
  }
  const TShape anchors{data[kHeight], data[kWidth], param_.AnchorsPerCell()};
  UnifyShape(TShape{1, anchors.Size(), 4}, &(*out)[0], TypeString(), "output");
  return data.known();
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(multibox_prior, registry) {
  registry.AddProperty("_contrib_MultiBoxPrior", {"MultiBoxPrior"},
                       [] { return std::make_unique<mxtrain::MultiBoxPriorProperty>(); });
}
