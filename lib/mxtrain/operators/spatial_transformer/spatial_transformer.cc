// SPDX-License-Identifier: Apache-2.0
// SpatialTransformer: data [N, C, H, W] read at the places of the grid that an affine map loc [N,
// 6] makes of a regular one (Jaderberg et al., "Spatial Transformer Networks", 2015).
#include "mxtrain/operator/composite.h"
#include "mxtrain/operator/images.h"

namespace mxtrain {
namespace {

struct SpatialTransformerParam : Parameter<SpatialTransformerParam> {
  TShape target_shape;
  int transform_type = 0, sampler_type = 0;
  static void Declare(Fields<SpatialTransformerParam>& f) {
    using P = SpatialTransformerParam;
    f.Add("target_shape", &P::target_shape)
        .Default(TShape{0, 0})
        .Help("height and width of the output; required");
    f.Add("transform_type", &P::transform_type)
        .Enum({{"affine", 0}})
        .Required()
        .Help("affine: x and y are linear in the place of the output, loc holds the 2 x 3 numbers");
    f.Add("sampler_type", &P::sampler_type)
        .Enum({{"bilinear", 0}})
        .Required()
        .Help("interpolation between pixels; outside of the image the data are zero");
    f.Ignored("cudnn_off", "use an implementation other than cuDNN's");
  }
};

void CompleteSpatialTransformer(const SpatialTransformerParam& param, std::vector<TShape>* in) {
  const TShape& size = param.target_shape;
  if (size.ndim() != 2 || size[0] < 1 || size[1] < 1) {
    Throw(ErrorKind::kConfig,
          "SpatialTransformer: target_shape = {}: give the two sizes of the output, (h, w)",
          size.ToTuple());
  }
  TShape &data = (*in)[0], &loc = (*in)[1];
  UnifyImages(&data, "SpatialTransformer", "data");
  UnifyShape({data[0], 6}, &loc, "SpatialTransformer", "loc");
  data[0] = loc[0];
}

void LowerSpatialTransformer(const SpatialTransformerParam& param, Lowering& g) {
  const auto grid =
      g("GridGenerator", {g.argument(1)},
        {{"transform_type", "affine"}, {"target_shape", param.target_shape.ToTuple()}});
  g.SetOutput(0, g("BilinearSampler", {g.argument(0), grid}));
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(spatial_transformer, registry) {
  using namespace mxtrain;
  AddComposite<SpatialTransformerParam>(
      registry, {.name = "SpatialTransformer",
                 .description = "images under an affine map of their pixels' places",
                 .arguments = {"data", "loc"},
                 .complete = CompleteSpatialTransformer,
                 .lower = LowerSpatialTransformer});
}
