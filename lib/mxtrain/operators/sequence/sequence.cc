// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/sequence/sequence.h"

#include <algorithm>

#include "mxtrain/operator/registry.h"

namespace mxtrain {

bool InferSequenceShape(const std::string& who, int axis, bool last, std::vector<TShape>* in,
                        TShape* output) {
  TShape& data = (*in)[0];
  if (!data.has_rank() && output->has_rank() && output->ndim() < TShape::kMaxDims)
    data = TShape::OfRank(output->ndim() + (last ? 1 : 0));
  if (!data.has_rank()) return false;
  if (data.ndim() < 2) {
    Throw(ErrorKind::kConfig, "{}: data has shape {}; expected steps and a batch, {}", who,
          data.ToString(), axis == 0 ? "[T, N, ...]" : "[N, T, ...]");
  }
  const int batch = 1 - axis;
  if (in->size() > 1) {
    ExpectShape(TShape{data[batch]}, &(*in)[1], who, "sequence_length");
    data[batch] = (*in)[1][0];
  }
  if (!last) {
    ExpectShape(data, output, who, "output");
    data = *output;
  } else {
    TShape step = TShape::OfRank(data.ndim() - 1);
    step[0] = data[batch];
    std::copy(data.begin() + 2, data.end(), &step[0] + 1);
    ExpectShape(step, output, who, "output");
    data[batch] = (*output)[0];
    std::copy(output->begin() + 1, output->end(), &data[0] + 2);
    if (data[axis] == 0) {
      Throw(ErrorKind::kConfig, "{}: data has shape {}, which has no steps", who, data.ToString());
    }
  }
  if (in->size() > 1) (*in)[1][0] = data[batch];
  return data.known();
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(sequence, registry) {
  using namespace mxtrain;
  registry.AddProperty("SequenceMask", {}, [] { return std::make_unique<SequenceMaskProperty>(); });
  registry.AddProperty("SequenceLast", {}, [] { return std::make_unique<SequenceLastProperty>(); });
  registry.AddProperty("SequenceReverse", {},
                       [] { return std::make_unique<SequenceReverseProperty>(); });
}
