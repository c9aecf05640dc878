// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "mxtrain/operator/box_offsets.h"
#include "mxtrain/operators/box_decode/box_decode.h"

namespace mxtrain::box_decode {

// Box i of the batch; the output may be the data.
template <typename T>
struct DecodeBox {
  using C = ComputeOf<T>;
  const T *data, *anchors;
  int64_t boxes;  // of an image
  BoxNumbers<C> factors;
  C clip;
  int format;
  OpReqType req;
  T* out;

  MXTRAIN_HD void operator()(int64_t i) const {
    BoxNumbers<C> offsets{};
    for (int k = 0; k < 4; ++k) {
      const C offset = static_cast<C>(data[i * 4 + k]) * factors[k];
      offsets.at[k] = k >= 2 && clip > C(0) && !(offset < clip) ? clip : offset;
    }
    const Corners<C> box = BoxAt(offsets, ReadCentered(anchors + i % boxes * 4, format));
    const C corners[4] = {box.left, box.top, box.right, box.bottom};
    for (int k = 0; k < 4; ++k) Assign(req, out, i * 4 + k, corners[k]);
  }
};

template <typename Device>
class BoxDecode final : public Operator {
 public:
  explicit BoxDecode(const BoxDecodeParam& param) : param_(param) {}

  void Forward(const ForwardArgs& args) override {
    if (args.req[0] == OpReqType::kNullOp) return;
    const TBlob &data = args.in_data[BoxDecodeProperty::kData],
                &anchors = args.in_data[BoxDecodeProperty::kAnchors];
    SwitchFloating(data.type, "box_decode", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using C = ComputeOf<T>;
      const BoxNumbers<C> factors{{static_cast<C>(param_.std0), static_cast<C>(param_.std1),
                                   static_cast<C>(param_.std2), static_cast<C>(param_.std3)}};
      Launch(Device{args.ctx.run_ctx}, data.Size() / 4,
             DecodeBox<T>{data.dptr<T>(), anchors.dptr<T>(), data.shape[1], factors,
                          static_cast<C>(param_.clip), param_.format, args.req[0],
                          args.out_data[0].dptr<T>()});
    });
  }

 private:
  const BoxDecodeParam param_;
};

}  // namespace mxtrain::box_decode

MXTRAIN_KERNELS(box_decode, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(ForwardKernel<BoxDecodeProperty, box_decode::BoxDecode<Device>, Device>(
      "_contrib_box_decode"));
}
