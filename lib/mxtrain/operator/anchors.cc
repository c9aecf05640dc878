// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/anchors.h"

namespace mxtrain {

void AnchorFields::CheckAnchors(const std::string& who) const {
  const bool sized = size.has_rank() && size.ndim() == 2 && size[0] > 0 && size[1] > 0;
  if (!sized) {
    Throw(ErrorKind::kConfig, "{}: size = {}: expected two positive numbers, height and width", who,
          size.ToTuple());
  }
  CheckVariances(variances, who);
}

std::vector<std::string> AnchorArgumentNames() {
  return {"scores", "offsets", "anchors"};
}

AnchorShape UnifyAnchors(const std::string& who, AnchorShape known, std::vector<TShape>* in) {
  const std::vector<std::string> names = AnchorArgumentNames();
  const auto unify = [&](AnchorArgument argument, TShape expected) {
    TShape& shape = (*in)[static_cast<size_t>(argument)];
    UnifyShape(shape, &expected, who, names[static_cast<size_t>(argument)]);
    shape = expected;
    return expected;
  };
  // Twice: what a later array says holds for the earlier ones.
  for (int pass = 0; pass < 2; ++pass) {
    known.count = unify(kAnchorBoxes, {1, known.count, 4})[1];
    const TShape scores = unify(kAnchorScores, {known.images, known.count, known.columns});
    const TShape offsets = unify(kAnchorOffsets, {scores[0], scores[1], 4});
    known = {offsets[0], offsets[1], scores[2]};
  }
  if (known.count == 0) Throw(ErrorKind::kConfig, "{}: there is no anchor", who);
  if (known.columns == 0 || known.columns == 1) {
    Throw(ErrorKind::kConfig,
          "{}: scores have shape {}; expected [images, anchors, classes + 1], the background first",
          who, (*in)[kAnchorScores].ToString());
  }
  return known;
}

}  // namespace mxtrain
