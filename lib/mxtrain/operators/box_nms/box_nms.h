// SPDX-License-Identifier: Apache-2.0
#pragma once
// box_nms: non-maximum suppression. data [..., boxes, columns]: rows with a score, a box from
// column coord_start on, perhaps a class, and anything else. As MXNet 1.9:
//
// - a row takes part if its score is above valid_thresh and its class is not background_id; of
//   those the topk best, ordered by score, equal scores in the order of their rows;
// - in that order a row is kept unless a row that was kept before it, of the same class (of any
// with
//   force_suppress or without classes), has an intersection over union with it above
//   overlap_thresh;
// - the output has the rows that were kept, in that order, then rows of -1.
//
// The gradient of a row that was kept goes to where it came from.
#include "mxtrain/operator/boxes.h"
#include "mxtrain/operator/property.h"

namespace mxtrain {

struct BoxNmsParam : Parameter<BoxNmsParam> {
  float overlap_thresh, valid_thresh;
  int topk, coord_start, score_index, id_index, background_id;
  bool force_suppress;
  int in_format, out_format;
  static void Declare(Fields<BoxNmsParam>& f);
};

class BoxNmsProperty final : public PropertyWithParam<BoxNmsParam> {
 public:
  std::string TypeString() const override { return "_contrib_box_nms"; }
  std::string Description() const override {
    return "the boxes that no box of a higher score overlaps too much";
  }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>&,
                                             const std::vector<int>&) const override {
    return {out_grad[0]};
  }
};

}  // namespace mxtrain
