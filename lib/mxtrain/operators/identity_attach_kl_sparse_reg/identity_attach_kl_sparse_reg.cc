// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/identity_attach_kl_sparse_reg/identity_attach_kl_sparse_reg.h"

#include "mxtrain/operator/registry.h"

namespace mxtrain {

bool KlSparseProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                  std::vector<TShape>* aux) const {
  const bool known = InferSameShape(*this, in, out);
  const TShape& data = (*in)[0];
  if (!data.has_rank()) return false;
  if (data.ndim() != 2) {
    Throw(ErrorKind::kConfig, "IdentityAttachKLSparseReg: data has shape {}; expected [N, units]",
          data.ToString());
  }
  aux->resize(1);
  UnifyShape({data[1]}, &(*aux)[0], TypeString(), "moving_avg");
  return known;
}

// The moving average of 16-bit data is float32.
bool KlSparseProperty::InferType(std::vector<DType>* in, std::vector<DType>* out,
                                 std::vector<DType>* aux) const {
  std::vector<DType> none;
  const bool known = OperatorProperty::InferType(in, out, &none);
  aux->resize(1, DType::kUnknown);
  if (known) {
    UnifyType((*in)[0] == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32, &(*aux)[0],
              TypeString(), "moving_avg");
  }
  return known;
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(identity_attach_kl_sparse_reg, registry) {
  registry.AddProperty("IdentityAttachKLSparseReg", {},
                       [] { return std::make_unique<mxtrain::KlSparseProperty>(); });
}
