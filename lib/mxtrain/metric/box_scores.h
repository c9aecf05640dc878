// SPDX-License-Identifier: Apache-2.0
#pragma once
// Evaluation of object detection: the average precision of COCO and of Pascal VOC.
//
// Boxes are continuous, in pixels from the upper left corner of the image: width = right - left,
// without the "+ 1" of the Pascal VOC devkit.
#include <cstdint>
#include <span>
#include <vector>

#include "mxtrain/base/macros.h"

namespace mxtrain {

// A detection.
struct FoundBox {
  int label;
  float score;
  double left, top, right, bottom;
};

// A labelled object.
struct TrueBox {
  int label;
  double left, top, right, bottom;
  double area = -1;        // of its segmentation, by which COCO sorts sizes; negative: of the box
  bool crowd = false;      // COCO's iscrowd: a region of many objects
  bool difficult = false;  // Pascal VOC
};

// Of their areas; 0 for boxes that do not overlap. Coordinates are finite.
MXTRAIN_API double IntersectionOverUnion(const FoundBox& found, const TrueBox& truth);

// The boxes of one class in one image, the detections in falling order of score.
struct ClassBoxes {
  std::vector<TrueBox> truth;
  std::vector<FoundBox> found;
};

enum class VocRule {
  kElevenPoints,  // until 2009: mean, over r = 0, 0.1 .. 1, of the best precision at a recall >= r
  kAllPoints,     // since 2010: area under the curve of the best precision at a recall >= r
};

// Of the detections with at least this score.
struct CurvePoint {
  float score;
  double precision, recall;
};

// Collects the boxes of images; every measure is computed when asked for. What is undefined, such
// as the precision of a class without labelled objects, is NaN, and is skipped in means. Detections
// of equal score rank in the order in which they were added. Not thread-safe.
class MXTRAIN_API BoxScores {
 public:
  // Average precision and recall: means over the classes and over IoU 0.5, 0.55 .. 0.95, for ap50
  // and ap75 at one IoU. The 100 best detections of a class in an image count, for ar1 and ar10 the
  // best and the 10 best. Small: an area of at most 32^2 pixels; large: of at least 96^2.
  struct Coco {
    double ap, ap50, ap75, ap_small, ap_medium, ap_large;
    double ar1, ar10, ar100, ar_small, ar_medium, ar_large;
  };

  explicit BoxScores(int num_classes);

  // One image. A detection whose score is NaN ranks last. Throws Error (kData), and adds nothing,
  // if a label is outside [0, num_classes).
  void Add(std::span<const TrueBox> truth, std::span<const FoundBox> found);

  // The numbers of COCO's own evaluation (pycocotools, COCOeval for boxes). They agree to about
  // 1e-15, unless a size or an IoU is equal to its limit but for the rounding of left + width.
  // Crowds do not count as objects, nor do detections inside them as errors. Difficult objects,
  // which COCO's files do not have, do not count, nor do their detections.
  Coco CocoStats() const;
  // Of each class the same average precision over all IoUs, and at one in (0, 1].
  std::vector<double> ClassAp() const;
  std::vector<double> ClassApAt(double iou) const;
  // Precision and recall of a class, by COCO's rules of matching at an IoU in (0, 1]: a point for
  // each detection that counts, in falling order of score. Empty for a class without objects.
  std::vector<CurvePoint> Curve(int label, double iou) const;

  // Pascal VOC's average precision of each class at an IoU in (0, 1] (Everingham et al., "The
  // Pascal Visual Object Classes (VOC) Challenge", IJCV 2010, section 4.2). Difficult objects do
  // not count, nor do their detections as errors. VOC knows no crowds: they count like others.
  std::vector<double> VocAp(VocRule rule, double iou) const;

 private:
  std::vector<std::vector<ClassBoxes>> classes_;  // of each the images that have boxes of it
};

}  // namespace mxtrain
