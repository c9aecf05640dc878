// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/loss_scale/loss_scale.h"

#include "mxtrain/base/error.h"
#include "mxtrain/operator/loss_scale.h"
#include "mxtrain/operator/registry.h"

namespace mxtrain {
namespace {

void Require(const TShape& expected, TShape* given, const OperatorProperty& property,
             const char* what) {
  TShape shape = expected;
  UnifyShape(*given, &shape, property.TypeString(), what);
  *given = shape;
}

}  // namespace

bool ScaleGradientProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                       std::vector<TShape>*) const {
  UnifyShape((*out)[0], &(*in)[0], TypeString(), "output");
  const TShape &data = (*out)[0] = (*in)[0], &scale = (*in)[1];
  if (!scale.has_rank()) (*in)[1] = {1};
  if (!data.known() || !scale.known()) return false;
  const bool one = scale == TShape{1};
  if (one || (scale.ndim() == 1 && data.ndim() > 0 && scale[0] > 0 && data[0] % scale[0] == 0))
    return true;
  Throw(ErrorKind::kConfig,
        "{}: scale has shape {}, but data of shape {} need one number, or one for each of equal "
        "blocks of axis 0",
        TypeString(), scale.ToString(), data.ToString());
}

// `scale` is float32 for any type of the data.
bool ScaleGradientProperty::InferType(std::vector<DType>* in, std::vector<DType>* out,
                                      std::vector<DType>* aux) const {
  std::vector<DType> data = {(*in)[0]};
  const bool known = OperatorProperty::InferType(&data, out, aux);
  UnifyType(DType::kFloat32, &(*in)[1], TypeString(), "scale");
  (*in)[0] = data[0];
  return known;
}

bool LossScaleUpdateProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                         std::vector<TShape>* aux) const {
  UnifyShape((*out)[0], &(*in)[1], TypeString(), "output");
  (*out)[0] = (*in)[1];
  Require({kLossScaleNumbers}, &(*aux)[0], *this, "state");
  Require({1}, &(*aux)[1], *this, "scale");
  return (*in)[0].known() && (*in)[1].known();
}

bool LossScaleUpdateProperty::InferType(std::vector<DType>* in, std::vector<DType>* out,
                                        std::vector<DType>* aux) const {
  UnifyType(DType::kFloat64, &(*in)[0], TypeString(), "sums");
  UnifyType(DType::kFloat32, &(*in)[1], TypeString(), "scalars");
  UnifyType(DType::kFloat32, &(*out)[0], TypeString(), "output");
  UnifyType(DType::kFloat32, &(*aux)[0], TypeString(), "state");
  UnifyType(DType::kFloat32, &(*aux)[1], TypeString(), "scale");
  return true;
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(loss_scale, registry) {
  registry.AddProperty("_scale_gradient", {},
                       [] { return std::make_unique<mxtrain::ScaleGradientProperty>(); });
  registry.AddProperty("_loss_scale_update", {},
                       [] { return std::make_unique<mxtrain::LossScaleUpdateProperty>(); });
}
