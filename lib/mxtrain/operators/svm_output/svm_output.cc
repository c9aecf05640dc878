// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/svm_output/svm_output.h"

#include "mxtrain/operator/registry.h"

namespace mxtrain {

bool SvmOutputProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                   std::vector<TShape>*) const {
  TShape& data = (*in)[0];
  UnifyShape((*out)[0], &data, TypeString(), "output");
  (*out)[0] = data;
  if (!data.has_rank()) return false;
  if (data.ndim() != 2) {
    Throw(ErrorKind::kConfig, "SVMOutput: data has shape {}; expected [N, classes]",
          data.ToString());
  }
  UnifyShape({data[0]}, &(*in)[1], TypeString(), "label");
  return data.known();
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(svm_output, registry) {
  registry.AddProperty("SVMOutput", {},
                       [] { return std::make_unique<mxtrain::SvmOutputProperty>(); });
}
