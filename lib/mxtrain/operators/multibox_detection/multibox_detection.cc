// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/multibox_detection/multibox_detection.h"

#include "mxtrain/operator/box_offsets.h"
#include "mxtrain/operator/registry.h"

namespace mxtrain {

void MultiBoxDetectionParam::Declare(Fields<MultiBoxDetectionParam>& f) {
  using P = MultiBoxDetectionParam;
  f.Add("clip", &P::clip).Default(true).Help("boxes end at the edges of the image, 0 and 1");
  f.Add("threshold", &P::threshold).Default(0.01f).Help("least score of a row");
  f.Add("background_id", &P::background_id)
      .Default(0)
      .Range(0, 0)
      .Help("class of the background; MXNet 1.9 knows no other");
  f.Add("nms_threshold", &P::nms_threshold)
      .Default(0.5f)
      .Help(
          "a row of this intersection over union with a better one is suppressed; not above 0, "
          "or above 1: none is");
  f.Add("force_suppress", &P::force_suppress)
      .Default(false)
      .Help("boxes of other classes suppress, too");
  DeclareVariances(f, &P::variances, "factors of the offsets");
  f.Add("nms_topk", &P::nms_topk)
      .Default(-1)
      .Help("so many of the best rows take part in the suppression; below 1: all");
}

void MultiBoxDetectionProperty::Check() {
  CheckVariances(param_.variances, TypeString());
}

bool MultiBoxDetectionProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                           std::vector<TShape>*) const {
  const std::vector<std::string> names = ListArguments();
  int64_t images = TShape::kUnknown, anchors = TShape::kUnknown;
  const auto unify = [&](TShape* shape, TShape expected, const std::string& name) {
    UnifyShape(*shape, &expected, TypeString(), name);
    *shape = expected;
  };
  TShape &scores = (*in)[kClassProb], &offsets = (*in)[kOffsets], &anchor = (*in)[kAnchor],
         &output = (*out)[0];
  // Twice: what a later array says holds for the earlier ones.
  for (int pass = 0; pass < 2; ++pass) {
    unify(&anchor, {1, anchors, 4}, names[kAnchor]);
    unify(&scores, {images, TShape::kUnknown, anchor[1]}, names[kClassProb]);
    unify(&output, {scores[0], scores[2], kColumns}, "output");
    anchors = output[1];
    const int64_t numbers =
        anchors == TShape::kUnknown ? TShape::kUnknown : TShape{anchors, 4}.Size();
    unify(&offsets, {output[0], numbers}, names[kOffsets]);
    images = offsets[0];
  }
  if (anchors == 0 || scores[1] == 0) {
    Throw(ErrorKind::kConfig, "{}: there is no {}: anchor has shape {} and cls_prob has shape {}",
          TypeString(), anchors == 0 ? "anchor" : "class", anchor.ToString(), scores.ToString());
  }
  return scores.known() && offsets.known();
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(multibox_detection, registry) {
  registry.AddProperty("_contrib_MultiBoxDetection", {"MultiBoxDetection"},
                       [] { return std::make_unique<mxtrain::MultiBoxDetectionProperty>(); });
}
