// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/multibox_target/multibox_target.h"

#include <climits>

#include "mxtrain/operator/box_offsets.h"
#include "mxtrain/operator/registry.h"

namespace mxtrain {

void MultiBoxTargetParam::Declare(Fields<MultiBoxTargetParam>& f) {
  using P = MultiBoxTargetParam;
  f.Add("overlap_threshold", &P::overlap_threshold)
      .Default(0.5f)
      .Help(
          "anchors of more than this intersection over union with an object are to find it; not "
          "above 0: the best for each object alone");
  f.Add("ignore_label", &P::ignore_label).Default(-1.0f).Help("class of anchors not to learn of");
  f.Add("negative_mining_ratio", &P::negative_mining_ratio)
      .Default(-1.0f)
      .Help(
          "anchors of the background for each that is to find an object, at most; not above 0: "
          "all");
  f.Add("negative_mining_thresh", &P::negative_mining_thresh)
      .Default(0.5f)
      .Help(
          "anchors of the background have less than this intersection over union with every "
          "object");
  f.Add("minimum_negative_samples", &P::minimum_negative_samples)
      .Default(0)
      .Range(0, INT_MAX)
      .Help("anchors of the background in each image, at least, if the ratio bounds them");
  DeclareVariances(f, &P::variances, "divisors of the offsets");
}

void MultiBoxTargetProperty::Check() {
  CheckVariances(param_.variances, TypeString());
  if (param_.Mines() && !(param_.negative_mining_thresh > 0)) {
    Throw(ErrorKind::kConfig, "{}: negative_mining_thresh = {}: expected a number above 0",
          TypeString(), params::Print(param_.negative_mining_thresh));
  }
}

bool MultiBoxTargetProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                        std::vector<TShape>*) const {
  const std::vector<std::string> names = ListArguments(), results = ListOutputs();
  int64_t images = TShape::kUnknown, anchors = TShape::kUnknown;
  const auto unify = [&](TShape* shape, TShape expected, const std::string& name) {
    UnifyShape(*shape, &expected, TypeString(), name);
    *shape = expected;
  };
  TShape &anchor = (*in)[kAnchor], &label = (*in)[kLabel], &scores = (*in)[kClassPred],
         &classes = (*out)[kClassTarget];
  // Twice: what a later array says holds for the earlier ones.
  for (int pass = 0; pass < 2; ++pass) {
    unify(&anchor, {1, anchors, 4}, names[kAnchor]);
    unify(&scores, {images, TShape::kUnknown, anchor[1]}, names[kClassPred]);
    unify(&classes, {scores[0], scores[2]}, results[kClassTarget]);
    unify(&label, {classes[0], TShape::kUnknown, TShape::kUnknown}, names[kLabel]);
    anchors = classes[1];
    images = label[0];
    const int64_t numbers =
        anchors == TShape::kUnknown ? TShape::kUnknown : TShape{anchors, 4}.Size();
    for (const int i : {kBoxTarget, kBoxMask}) {
      const auto at = static_cast<size_t>(i);
      unify(&(*out)[at], {images, numbers}, results[at]);
      images = (*out)[at][0];
    }
  }
  if (anchors == 0 || scores[1] == 0) {
    Throw(ErrorKind::kConfig, "{}: there is no {}: anchor has shape {} and cls_pred has shape {}",
          TypeString(), anchors == 0 ? "anchor" : "class", anchor.ToString(), scores.ToString());
  }
  if (label[2] != TShape::kUnknown && label[2] < kLeastColumns) {
    Throw(ErrorKind::kConfig,
          "{}: label has shape {}; expected [images, objects, columns] with at least {} columns",
          TypeString(), label.ToString(), kLeastColumns);
  }
  return scores.known() && label.known();
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(multibox_target, registry) {
  registry.AddProperty("_contrib_MultiBoxTarget", {"MultiBoxTarget"},
                       [] { return std::make_unique<mxtrain::MultiBoxTargetProperty>(); });
}
