// SPDX-License-Identifier: Apache-2.0
#pragma once
// pick(data, index): one element of every column along an axis,
//   output[o..., j...] = data[o..., index[o..., j...], j...]
// The index has the shape of the data without the axis, or with length 1 there. batch_take(a,
// indices): the same for rows of a matrix, output[i] = a[i, indices[i]].
//
// Indices may be of any numeric type; fractions are truncated. mode: an index out of range becomes
// the nearest one in range (clip), or counts modulo the length of the axis (wrap). Indices have no
// gradient.
#include "mxtrain/operator/gather_property.h"

namespace mxtrain {

struct PickParam : Parameter<PickParam> {
  int axis, mode;
  bool keepdims;
  static void Declare(Fields<PickParam>& f) {
    f.Add("axis", &PickParam::axis).Default(-1).Help("axis to pick along, negative from the end");
    f.Add("keepdims", &PickParam::keepdims).Default(false).Help("the axis stays, with length 1");
    f.Add("mode", &PickParam::mode)
        .Enum({{"clip", kIndexClip}, {"wrap", kIndexWrap}})
        .Default(kIndexClip)
        .Help("an index out of range: the nearest in range, or modulo the length");
  }
};

class PickProperty final : public GatherProperty<PickParam> {
 public:
  std::string TypeString() const override { return "pick"; }
  std::string Description() const override { return "one element of every column of an axis"; }
  std::vector<std::string> ListArguments() const override { return {"data", "index"}; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
};

class BatchTakeProperty final : public GatherProperty<NoParam> {
 public:
  std::string TypeString() const override { return "batch_take"; }
  std::string Description() const override { return "one element of every row of a matrix"; }
  std::vector<std::string> ListArguments() const override { return {"a", "indices"}; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
};

}  // namespace mxtrain
