// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/box_nms/box_nms.h"

#include <algorithm>

#include "mxtrain/operator/registry.h"

namespace mxtrain {

void BoxNmsParam::Declare(Fields<BoxNmsParam>& f) {
  using P = BoxNmsParam;
  f.Add("overlap_thresh", &P::overlap_thresh)
      .Default(0.5f)
      .Range(0, 1)
      .Help("a box with more than this intersection over union with a better one is suppressed");
  f.Add("valid_thresh", &P::valid_thresh)
      .Default(0.0f)
      .Help("only rows with a score above it take part");
  f.Add("topk", &P::topk).Default(-1).Help("so many of the best rows take part; below 1: all");
  f.Add("coord_start", &P::coord_start)
      .Default(2)
      .Range(0, 1 << 20)
      .Help("first column of the box");
  f.Add("score_index", &P::score_index).Default(1).Range(0, 1 << 20).Help("column of the score");
  f.Add("id_index", &P::id_index)
      .Default(-1)
      .Range(-1, 1 << 20)
      .Help("column of the class; -1: there is none");
  f.Add("background_id", &P::background_id)
      .Default(-1)
      .Help("rows of this class do not take part; -1: there is none");
  f.Add("force_suppress", &P::force_suppress)
      .Default(false)
      .Help("boxes of other classes suppress, too");
  DeclareBoxFormat(
      f, "in_format", &P::in_format,
      "of the data: corner (left, top, right, bottom) or center (x, y, width, height)");
  DeclareBoxFormat(f, "out_format", &P::out_format, "of the output");
}

bool BoxNmsProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                std::vector<TShape>*) const {
  if (!InferSameShape(*this, in, out)) return false;
  const TShape& data = (*in)[0];
  const int64_t columns = data.ndim() < 2 ? 0 : data[data.ndim() - 1];
  const int needed =
      std::max({param_.coord_start + 4, param_.score_index + 1, param_.id_index + 1});
  if (columns < needed) {
    Throw(ErrorKind::kConfig,
          "{}: the data have shape {}; expected [..., boxes, columns] with at least {} columns",
          TypeString(), data.ToString(), needed);
  }
  return true;
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(box_nms, registry) {
  registry.AddProperty(
      "_contrib_box_nms",
      {"box_nms", "_contrib_box_non_maximum_suppression", "box_non_maximum_suppression"},
      [] { return std::make_unique<mxtrain::BoxNmsProperty>(); });
}
