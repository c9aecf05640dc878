// SPDX-License-Identifier: Apache-2.0
#pragma once
// RegionTargets: which regions of each image are learnt from, and what they are to say (Girshick
// 2015, "Fast R-CNN", arXiv 1504.08083, section 2.3). Arguments:
//
//   rois   [N, R, 5]         [image, left, top, right, bottom] in pixels of the image as the net
//                            reads it; what PyramidProposals gives. A negative image is no
//                            region, nor is one without an area.
//   label  [N, objects, 6]   operator/labelled_objects.h
//
// The objects of an image that are learnt are regions of it, too. A region is to find the object
// that it overlaps most, the first of equal ones, if the intersection over union is at least
// `foreground`; it is of the background if that is below `background`, unless a share of at least
// `foreground` of its area is in an object that nothing is to be learnt of. Of each image a random
// sample of `samples` regions is taken, of which at most `object_share` are to find an object
// (operator/balanced_sample.h). Outputs, without a gradient:
//
//   output   [N, samples, 5]  the regions, those that are to find an object first, then rows of -1
//   targets  [N, samples, 5]  0 of the background, else the class and one, and the offsets of the
//                             object from the region (operator/box_offsets.h) over the variances;
//                             -1 and zeros where there is no region
//
// In evaluation the sample is that of the last training step.
#include "mxtrain/operator/box_offsets.h"
#include "mxtrain/operator/no_gradient.h"

namespace mxtrain {

struct RegionTargetsParam : Parameter<RegionTargetsParam> {
  int samples;
  float foreground, background, object_share;
  std::vector<double> variances;
  static void Declare(Fields<RegionTargetsParam>& f);
};

class RegionTargetsProperty final : public PropertyWithoutGradient<RegionTargetsParam> {
 public:
  static constexpr int64_t kColumns = 5;
  enum Argument : int { kRois, kLabel };
  enum Output : int { kRegions, kTargets };

  std::string TypeString() const override { return "RegionTargets"; }
  std::string Description() const override {
    return "a sample of regions of interest and what they are to find";
  }
  std::vector<std::string> ListArguments() const override { return {"rois", "label"}; }
  std::vector<std::string> ListOutputs() const override { return {"output", "targets"}; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                 std::vector<DType>* aux) const override;
  std::vector<ResourceRequest> ForwardResource(const std::vector<TShape>&) const override {
    return {{ResourceRequest::kRandom, 0}};
  }

 protected:
  void Check() override;
};

}  // namespace mxtrain
