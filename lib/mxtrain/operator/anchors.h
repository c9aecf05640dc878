// SPDX-License-Identifier: Apache-2.0
#pragma once
// Detection with anchors (Liu et al. 2016, "SSD", arXiv 1512.02325): a net says for each of B
// anchors, which are boxes in an image, how likely an object of each class is there, and how its
// box differs from the anchor. Arguments:
//
//   scores   [N, B, classes + 1]  logits; the first is that of the background, which is no object
//   offsets  [N, B, 4]            of the box from the anchor (operator/box_offsets.h), over the
//                                 variances
//   anchors  [1, B, 4]            in shares of the image, as MultiBoxPrior gives them
//
// Boxes are in pixels of the image as the net reads it; parameter `size` is its height and width.
#include <span>
#include <string>
#include <vector>

#include "mxtrain/operator/box_offsets.h"
#include "mxtrain/operator/class_scores.h"
#include "mxtrain/operator/property.h"

namespace mxtrain {

// A box is at most so many times as wide and as high as its anchor.
inline constexpr double kMostAnchorGrowth = 62.5;

// Parameters of operators with these arguments.
struct AnchorFields {
  TShape size;
  std::vector<double> variances;
  int format;

  template <typename P>
  static void DeclareAnchors(Fields<P>& f) {
    std::vector<double> P::*variances = &AnchorFields::variances;
    int P::*format = &AnchorFields::format;
    f.Add("size", &AnchorFields::size)
        .Required()
        .Help("height and width of the image as the net reads it, in pixels");
    DeclareVariances(f, variances, "factors of the offsets");
    DeclareBoxFormat(
        f, "format", format,
        "of the anchors: corner (left, top, right, bottom) or center (x, y, width, height)");
  }
  // Throws kConfig unless the size is two positive numbers and the variances are four.
  MXTRAIN_API void CheckAnchors(const std::string& who) const;
};

enum AnchorArgument : int { kAnchorScores, kAnchorOffsets, kAnchorBoxes };
// "scores", "offsets", "anchors".
MXTRAIN_API std::vector<std::string> AnchorArgumentNames();

struct AnchorShape {
  int64_t images = TShape::kUnknown, count = TShape::kUnknown, columns = TShape::kUnknown;
};
// Completes the shapes of those arguments, with what is known of images and anchors besides;
// kUnknown what does not follow. Throws kConfig on a contradiction, and where there is no anchor or
// no class.
MXTRAIN_API AnchorShape UnifyAnchors(const std::string& who, AnchorShape known,
                                     std::vector<TShape>* in);

// What a net says of the anchors of a batch; for kernels. Row i is anchor i % count of image
// i / count.
template <typename T>
struct AnchorPredictions : ClassScores<T> {  // columns: classes, and the background
  using C = ComputeOf<T>;
  int64_t images, count;
  const T *offsets, *anchors;
  BoxNumbers<C> variances;
  C height, width;
  int format;

  // `blobs`: the arguments.
  AnchorPredictions(const AnchorFields& fields, std::span<const TBlob> blobs)
      : ClassScores<T>{blobs[kAnchorScores].shape[2],
                       static_cast<const T*>(blobs[kAnchorScores].data)},
        images(blobs[kAnchorScores].shape[0]),
        count(blobs[kAnchorScores].shape[1]),
        offsets(static_cast<const T*>(blobs[kAnchorOffsets].data)),
        anchors(static_cast<const T*>(blobs[kAnchorBoxes].data)),
        variances(VariancesOf<C>(fields.variances)),
        height(static_cast<C>(fields.size[0])),
        width(static_cast<C>(fields.size[1])),
        format(fields.format) {}

  MXTRAIN_HD int64_t rows() const { return images * count; }
  MXTRAIN_HD C Offset(int64_t row, int k) const { return static_cast<C>(offsets[row * 4 + k]); }
  // In pixels.
  MXTRAIN_HD CenteredBox<C> Anchor(int64_t row) const {
    const CenteredBox<C> share = ReadCentered(anchors + row % count * 4, format);
    return {share.x * width, share.y * height, share.width * width, share.height * height};
  }
  MXTRAIN_HD Corners<C> AnchorCorners(int64_t row) const {
    const Corners<C> share = ReadBox(anchors + row % count * 4, format);
    return {share.left * width, share.top * height, share.right * width, share.bottom * height};
  }
};

}  // namespace mxtrain
