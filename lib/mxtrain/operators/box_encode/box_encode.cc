// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/box_encode/box_encode.h"

#include "mxtrain/operator/registry.h"

namespace mxtrain {

bool BoxEncodeProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                   std::vector<TShape>*) const {
  const std::vector<std::string> names = ListArguments(), results = ListOutputs();
  TShape anchors{TShape::kUnknown, TShape::kUnknown, 4};  // [N, B, 4]
  const auto unify = [&](TShape* shape, const std::string& name, int rank) {
    TShape expected = rank == 3 ? anchors : TShape{anchors[0], anchors[1]};
    UnifyShape(*shape, &expected, TypeString(), name);
    *shape = expected;
    anchors[0] = expected[0];
    anchors[1] = expected[1];
  };
  // Twice: what a later array says holds for the earlier ones.
  for (int pass = 0; pass < 2; ++pass) {
    unify(&(*in)[kAnchors], names[kAnchors], 3);
    unify(&(*in)[kSamples], names[kSamples], 2);
    unify(&(*in)[kMatches], names[kMatches], 2);
    unify(&(*out)[kTargets], results[kTargets], 3);
    unify(&(*out)[kMasks], results[kMasks], 3);
    TShape refs{anchors[0], TShape::kUnknown, 4};
    UnifyShape((*in)[kRefs], &refs, TypeString(), names[kRefs]);
    (*in)[kRefs] = refs;
    anchors[0] = refs[0];
  }
  for (const int i : {kMeans, kStds}) {
    TShape four{4};
    UnifyShape((*in)[static_cast<size_t>(i)], &four, TypeString(), names[static_cast<size_t>(i)]);
    (*in)[static_cast<size_t>(i)] = four;
  }
  return anchors.known() && (*in)[kRefs].known();
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(box_encode, registry) {
  registry.AddProperty("_contrib_box_encode", {"box_encode"},
                       [] { return std::make_unique<mxtrain::BoxEncodeProperty>(); });
}
