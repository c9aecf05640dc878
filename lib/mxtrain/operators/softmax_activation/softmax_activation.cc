// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/softmax_activation/softmax_activation.h"

#include "mxtrain/operator/registry.h"

namespace mxtrain {

bool SoftmaxActivationProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                           std::vector<TShape>*) const {
  const bool known = InferSameShape(*this, in, out);
  const TShape& data = (*in)[0];
  const int needed = param_.mode == kSoftmaxChannel ? 3 : 2;
  if (data.has_rank() && data.ndim() < needed) {
    Throw(ErrorKind::kConfig,
          "SoftmaxActivation: data has shape {}, but mode {} needs at least {} axes",
          data.ToString(), param_.mode == kSoftmaxChannel ? "channel" : "instance", needed);
  }
  return known;
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(softmax_activation, registry) {
  registry.AddProperty("SoftmaxActivation", {},
                       [] { return std::make_unique<mxtrain::SoftmaxActivationProperty>(); });
}
