// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/box_iou/box_iou.h"

#include "mxtrain/operator/registry.h"

namespace mxtrain {

bool BoxIouProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                std::vector<TShape>*) const {
  const std::vector<std::string> names = ListArguments();
  std::vector<int64_t> lengths;
  for (size_t i = 0; i < in->size(); ++i) {
    const TShape& boxes = (*in)[i];
    if (!boxes.has_rank()) return false;
    const int last = boxes.ndim() - 1;
    if (last < 0 || (boxes[last] != 4 && boxes[last] != TShape::kUnknown)) {
      Throw(ErrorKind::kConfig, "{}: {} has shape {}; expected [..., 4]", TypeString(), names[i],
            boxes.ToString());
    }
    (*in)[i][last] = 4;
    lengths.insert(lengths.end(), boxes.begin(), boxes.end() - 1);
  }
  UnifyShape(TShape(lengths), &(*out)[0], TypeString(), "output");
  return (*in)[kLhs].known() && (*in)[kRhs].known();
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(box_iou, registry) {
  registry.AddProperty("_contrib_box_iou", {"box_iou"},
                       [] { return std::make_unique<mxtrain::BoxIouProperty>(); });
}
