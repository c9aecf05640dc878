// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "mxtrain/operator/box_offsets.h"
#include "mxtrain/operators/box_encode/box_encode.h"

namespace mxtrain::box_encode {

// Anchor i of the batch; the targets may be the anchors.
template <typename T>
struct EncodeBox {
  using C = ComputeOf<T>;
  const T *samples, *matches, *anchors, *refs, *means, *stds;
  int64_t boxes, objects;  // of an image
  OpReqType target_req, mask_req;
  T *targets, *masks;

  // -1 if the anchor is not to find one.
  MXTRAIN_HD int64_t ObjectOf(int64_t i) const {
    const C number = static_cast<C>(matches[i]);
    const bool exists = number > C(-1) && number < static_cast<C>(objects);
    return static_cast<C>(samples[i]) > C(0.5) && exists ? static_cast<int64_t>(number) : -1;
  }
  MXTRAIN_HD void operator()(int64_t i) const {
    const int64_t object = ObjectOf(i);
    BoxNumbers<C> offsets{};
    if (object >= 0) {
      offsets = OffsetsOf(ReadCentered(refs + (i / boxes * objects + object) * 4, kBoxCorner),
                          ReadCentered(anchors + i * 4, kBoxCorner));
      for (int k = 0; k < 4; ++k)
        offsets.at[k] = (offsets[k] - static_cast<C>(means[k])) / static_cast<C>(stds[k]);
    }
    for (int k = 0; k < 4; ++k) {
      if (target_req != OpReqType::kNullOp) Assign(target_req, targets, i * 4 + k, offsets[k]);
      if (mask_req != OpReqType::kNullOp) Assign(mask_req, masks, i * 4 + k, C(object >= 0));
    }
  }
};

template <typename Device>
class BoxEncode final : public Operator {
 public:
  explicit BoxEncode(const NoParam&) {}

  void Forward(const ForwardArgs& args) override {
    using P = BoxEncodeProperty;
    const TBlob& anchors = args.in_data[P::kAnchors];
    SwitchFloating(anchors.type, "box_encode", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const auto in = [&](int i) {
        return args.in_data[static_cast<size_t>(i)].template dptr<T>();
      };
      Launch(Device{args.ctx.run_ctx}, anchors.Size() / 4,
             EncodeBox<T>{in(P::kSamples), in(P::kMatches), in(P::kAnchors), in(P::kRefs),
                          in(P::kMeans), in(P::kStds), anchors.shape[1],
                          args.in_data[P::kRefs].shape[1], args.req[P::kTargets],
                          args.req[P::kMasks], args.out_data[P::kTargets].template dptr<T>(),
                          args.out_data[P::kMasks].template dptr<T>()});
    });
  }
};

}  // namespace mxtrain::box_encode

MXTRAIN_KERNELS(box_encode, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(ForwardKernel<BoxEncodeProperty, box_encode::BoxEncode<Device>, Device>(
      "_contrib_box_encode"));
}
