// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/embedding/embedding.h"

#include "mxtrain/operator/gather_property.h"
#include "mxtrain/operator/registry.h"

namespace mxtrain {

bool EmbeddingProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                   std::vector<TShape>*) const {
  TShape &data = (*in)[kData], &weight = (*in)[kWeight], &output = (*out)[0];
  ExpectShape({param_.input_dim, param_.output_dim}, &weight, TypeString(), "weight");
  if (output.ndim() == 0)
    Throw(ErrorKind::kConfig, "Embedding: the output has shape []; its last axis is output_dim");
  return InferVectors(param_.output_dim, &data, &output, TypeString(), "data");
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(embedding, registry) {
  registry.AddProperty("Embedding", {},
                       [] { return std::make_unique<mxtrain::EmbeddingProperty>(); });
}
