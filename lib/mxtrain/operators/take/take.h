// SPDX-License-Identifier: Apache-2.0
#pragma once
// take(a, indices): the elements of `a` at indices along an axis,
//   output[o..., i..., j...] = a[o..., indices[i...], j...]
// where o... are the axes of `a` before the axis and j... those after it. Indices of any shape and
// numeric type; fractions are truncated. The gradient of an element is the sum over its
// occurrences, in their order. Indices have none.
//
// mode: what happens to an index out of range. clip: it becomes the nearest one in range; wrap: it
// counts modulo the length of the axis, -1 being the last; raise: it is an error (kData), on the
// CPU only.
#include "mxtrain/operator/gather_property.h"

namespace mxtrain {

struct TakeParam : Parameter<TakeParam> {
  int axis, mode;
  static void Declare(Fields<TakeParam>& f) {
    f.Add("axis", &TakeParam::axis).Default(0).Help("axis of a, negative from the end");
    f.Add("mode", &TakeParam::mode)
        .Enum({{"clip", kIndexClip}, {"wrap", kIndexWrap}, {"raise", kIndexRaise}})
        .Default(kIndexClip)
        .Help("an index out of range: the nearest in range, modulo the length, or an error");
  }
};

class TakeProperty final : public GatherProperty<TakeParam> {
 public:
  std::string TypeString() const override { return "take"; }
  std::string Description() const override { return "elements at indices along an axis"; }
  std::vector<std::string> ListArguments() const override { return {"a", "indices"}; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
};

}  // namespace mxtrain
