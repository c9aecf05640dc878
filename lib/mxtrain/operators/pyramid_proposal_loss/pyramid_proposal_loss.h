// SPDX-License-Identifier: Apache-2.0
#pragma once
// PyramidProposalLoss: the loss of a region proposal network over a feature pyramid
// (operator/pyramid_anchors.h; Ren et al. 2015, arXiv 1506.01497, equation 1), [N], one for each
// image. Its arguments, then label (operator/labelled_objects.h), of which classes do not matter.
// Ignores the head gradient, as all losses.
//
// - An anchor is to find the object that it overlaps most, the first of equal ones, if the
//   intersection over union is at least `foreground`, or if no anchor overlaps some object more
//   than this one does, by more than a millionth.
// - The other anchors are of the background if that is below `background`; nothing is learnt of
//   those between, nor of those of whose area a share of at least `foreground` is in an object that
//   nothing is to be learnt of.
// - Of each image a random sample of `samples` anchors is learnt, of which at most `object_share`
//   are to find an object (operator/balanced_sample.h).
//
//   L_i = N / max(S, 1) (sum binary cross-entropy of the scores + box_weight sum smooth L1 of the
//                        offsets)
//
// over the sample of image i, and those of it that are to find an object; S is how many are in the
// samples of all N images, so the mean of the losses is the sum over the batch, divided by S.
// Smooth L1 is x^2 / (2 beta) for |x| < beta, else |x| - beta / 2, of the differences to the
// offsets of the object from the anchor, with beta = 1 / 9. Targets have no gradient. In evaluation
// the sample is that of the last training step.
#include "mxtrain/operator/pyramid_anchors.h"

namespace mxtrain {

struct PyramidProposalLossParam : PyramidFields, Parameter<PyramidProposalLossParam> {
  float foreground, background, object_share, box_weight, grad_scale;
  int samples;
  static void Declare(Fields<PyramidProposalLossParam>& f);
};

class PyramidProposalLossProperty final : public PropertyWithParam<PyramidProposalLossParam> {
 public:
  static constexpr double kBeta = 1.0 / 9;

  std::string TypeString() const override { return "PyramidProposalLoss"; }
  std::string Description() const override {
    return "the loss of region proposals over a feature pyramid, of a sample of anchors";
  }
  std::vector<std::string> ListArguments() const override;
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                 std::vector<DType>* aux) const override;
  std::vector<int> DeclareBackwardDependency(const std::vector<int>&,
                                             const std::vector<int>& in_data,
                                             const std::vector<int>&) const override {
    return in_data;
  }
  bool HasGradient(int argument) const override { return argument < 2 * param_.strides.ndim(); }
  std::vector<ResourceRequest> ForwardResource(const std::vector<TShape>&) const override {
    return {{ResourceRequest::kRandom, 0}};
  }

 protected:
  void Check() override;
};

}  // namespace mxtrain
