// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/ctc_greedy_decoder/ctc_greedy_decoder.h"

#include "mxtrain/operator/registry.h"

namespace mxtrain {

bool CtcGreedyDecoderProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                          std::vector<TShape>*) const {
  TShape& data = (*in)[0];
  if (data.has_rank() && data.ndim() != 3) {
    Throw(ErrorKind::kConfig,
          "ctc_greedy_decoder: data has shape {}; expected scores [T, N, classes]",
          data.ToString());
  }
  if (!data.has_rank()) data = TShape::OfRank(3);
  if (data[2] == 0) {
    Throw(ErrorKind::kConfig, "ctc_greedy_decoder: data has shape {}, which has no class",
          data.ToString());
  }
  TShape rows{data[1], data[0], 2};
  UnifyShape((*out)[0], &rows, TypeString(), "output");
  if (in->size() > 1) {
    TShape lengths{rows[0]};
    UnifyShape((*in)[1], &lengths, TypeString(), "data_lengths");
    rows[0] = lengths[0];
    (*in)[1] = lengths;
  }
  data[0] = rows[1], data[1] = rows[0];
  (*out)[0] = rows;
  return data.known();
}

bool CtcGreedyDecoderProperty::InferType(std::vector<DType>* in, std::vector<DType>* out,
                                         std::vector<DType>*) const {
  if ((*in)[0] == DType::kUnknown) (*in)[0] = (*out)[0];
  if (in->size() > 1 && (*in)[1] == DType::kUnknown) (*in)[1] = DType::kFloat32;
  if ((*in)[0] == DType::kUnknown) return false;
  UnifyType((*in)[0], &(*out)[0], TypeString(), "output");
  return true;
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(ctc_greedy_decoder, registry) {
  registry.AddProperty("ctc_greedy_decoder", {},
                       [] { return std::make_unique<mxtrain::CtcGreedyDecoderProperty>(); });
}
