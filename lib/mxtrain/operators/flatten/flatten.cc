// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/flatten/flatten.h"

#include "mxtrain/operator/registry.h"

namespace mxtrain {

bool FlattenProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                 std::vector<TShape>*) const {
  TShape& data = (*in)[0];
  TShape& rows = (*out)[0];
  UnifyShape(TShape::OfRank(2), &rows, TypeString(), "output");
  if (!data.has_rank()) return false;
  if (data.ndim() == 0)
    Throw(ErrorKind::kConfig,
          "Flatten needs an array with a batch axis, not a scalar; reshape it to [1, 1]");
  TShape batch = TShape::OfRank(data.ndim());
  batch[0] = rows[0];
  UnifyShape(batch, &data, TypeString(), "data");
  // The data determine the row length; the row length determines one unknown axis of the data.
  int64_t known = data.KnownProduct(1, data.ndim());
  int unknown = 0, which = -1;
  for (int i = 1; i < data.ndim(); ++i) {
    if (data[i] != TShape::kUnknown) continue;
    ++unknown;
    which = i;
  }
  if (unknown == 1 && rows[1] != TShape::kUnknown && known > 0 && rows[1] % known == 0) {
    data[which] = rows[1] / known;
    unknown = 0;
    known = rows[1];
  }
  UnifyShape(TShape{data[0], unknown == 0 ? known : TShape::kUnknown}, &rows, TypeString(),
             "output");
  return data.known() && rows.known();
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(flatten, registry) {
  registry.AddProperty("Flatten", {"flatten"},
                       [] { return std::make_unique<mxtrain::FlattenProperty>(); });
}
