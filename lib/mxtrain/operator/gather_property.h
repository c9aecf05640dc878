// SPDX-License-Identifier: Apache-2.0
#pragma once
// The description shared by operators that select elements of argument 0 by the numbers in
// argument 1: indices, or lengths of sequences. The kernels are in gather_op.h.
#include "mxtrain/operator/axes.h"
#include "mxtrain/operator/property.h"

namespace mxtrain {

// What happens to an index that is not in [0, size): it becomes the nearest one that is, it counts
// modulo the size, or it is an error.
enum IndexMode : int { kIndexClip, kIndexWrap, kIndexRaise };

// Merges what follows for a shape into what is given; throws as UnifyShape, with the given one
// first.
inline void ExpectShape(TShape expected, TShape* given, const std::string& who,
                        const std::string& what) {
  UnifyShape(*given, &expected, who, what);
  *given = expected;
}

// For InferShape: `output` has a vector of this length for each of the indices. Returns whether all
// is known. `name`: of the indices.
inline bool InferVectors(int64_t length, TShape* indices, TShape* output, const std::string& who,
                         const std::string& name) {
  if (output->ndim() > 0 && !indices->has_rank()) *indices = TShape::OfRank(output->ndim() - 1);
  if (!indices->has_rank()) return false;
  const int axes = indices->ndim();
  if (axes == TShape::kMaxDims) {
    Throw(ErrorKind::kConfig, "{}: {} has shape {}; at most {} axes are supported", who, name,
          indices->ToString(), TShape::kMaxDims - 1);
  }
  ExpectShape(WithAxis(*indices, axes, length), output, who, "output");
  *indices = WithoutAxis(*output, axes);
  return indices->known();
}

// The numbers may be of any type and have no gradient. There may be none.
template <typename P>
class GatherProperty : public PropertyWithParam<P> {
 public:
  bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                 std::vector<DType>*) const override {
    std::vector<DType> data = {(*in)[0]}, none;
    const bool known = this->OperatorProperty::InferType(&data, out, &none);
    (*in)[0] = data[0];
    return known && in->back() != DType::kUnknown;
  }
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>& in_data,
                                             const std::vector<int>&) const override {
    if (in_data.size() == 1) return {out_grad[0]};
    return {out_grad[0], in_data[1]};
  }
  bool HasGradient(int argument) const override { return argument == 0; }
  MixedPrecision mixed_precision() const override { return {MixedPrecision::kFollows, 1}; }
};

}  // namespace mxtrain
