// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/fold_batch_norm/fold_batch_norm.h"

#include "mxtrain/operator/registry.h"

namespace mxtrain {

void FoldBatchNormParam::Declare(Fields<FoldBatchNormParam>& f) {
  using P = FoldBatchNormParam;
  f.Add("eps", &P::eps).Default(1e-3f).Range(0).Help("added to the variance");
  f.Add("fix_gamma", &P::fix_gamma).Default(true).Help("scale by 1; gamma is not read");
  f.Add("no_bias", &P::no_bias).Default(false).Help("the layer has no bias");
}

std::vector<std::string> FoldBatchNormProperty::ListArguments() const {
  std::vector<std::string> names{"weight"};
  if (!param_.no_bias) names.push_back("bias");
  for (const char* name : {"gamma", "beta", "moving_mean", "moving_var"}) names.push_back(name);
  return names;
}

bool FoldBatchNormProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                       std::vector<TShape>*) const {
  UnifyShape((*out)[0], &(*in)[0], TypeString(), "weight");
  (*out)[0] = (*in)[0];
  if (!(*in)[0].has_rank()) return false;
  if ((*in)[0].ndim() == 0)
    Throw(ErrorKind::kConfig, "{}: a weight must have an axis of output channels", TypeString());
  const TShape channels{(*in)[0][0]};
  const std::vector<std::string> names = ListArguments();
  for (size_t i = 1; i < in->size(); ++i) UnifyShape(channels, &(*in)[i], TypeString(), names[i]);
  UnifyShape(channels, &(*out)[1], TypeString(), "bias");
  return (*in)[0].known();
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(fold_batch_norm, registry) {
  registry.AddProperty("_FoldBatchNorm", {},
                       [] { return std::make_unique<mxtrain::FoldBatchNormProperty>(); });
}
