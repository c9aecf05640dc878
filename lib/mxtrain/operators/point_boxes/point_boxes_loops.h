// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "mxtrain/operator/identity.h"
#include "mxtrain/operator/operator.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/point_boxes/point_boxes.h"

namespace mxtrain::point_boxes {

// Row i of the output: point i % points of an image.
template <typename T>
struct ProposeBox {
  using C = ComputeOf<T>;
  PointMaps<T> maps;
  bool clip;
  OpReqType req;
  T* out;

  MXTRAIN_HD C Within(C at, C length) const {
    if (!clip) return at;
    return at < C(0) ? C(0) : at > length ? length : at;
  }
  MXTRAIN_HD void operator()(int64_t i) const {
    const int64_t image = i / maps.points;
    const auto at = maps.PlaceOf(i % maps.points);
    int64_t best = 0;
    C score = maps.Score(image, at, 0);
    for (int64_t k = 1; k < maps.classes; ++k) {
      const C other = maps.Score(image, at, k);
      if (other > score) score = other, best = k;
    }
    const Corners<C> box = maps.Box(image, at);
    const auto [width, height] = maps.Extent();
    C found = vector_math::Sigmoid(score);
    if (maps.form == kCenters) found *= vector_math::Sigmoid(maps.Objectness(image, at));
    const C row[PointBoxesProperty::kColumns] = {
        static_cast<C>(best),     found,
        Within(box.left, width),  Within(box.top, height),
        Within(box.right, width), Within(box.bottom, height)};
    for (int64_t k = 0; k < PointBoxesProperty::kColumns; ++k)
      Assign(req, out, i * PointBoxesProperty::kColumns + k, row[k]);
  }
};

template <typename Device>
class PointBoxes final : public Operator {
 public:
  explicit PointBoxes(const PointBoxesParam& param) : param_(param) {}

  void Forward(const ForwardArgs& args) override {
    const TBlob& out = args.out_data[0];
    if (args.req[0] == OpReqType::kNullOp || out.Size() == 0) return;
    SwitchFloating(out.type, "PointBoxes", [&](auto tag) {
      using T = typename decltype(tag)::type;
      Launch(Device{args.ctx.run_ctx}, out.Size() / PointBoxesProperty::kColumns,
             ProposeBox<T>{PointMaps<T>(param_.strides, args.in_data, param_.Form()), param_.clip,
                           args.req[0], out.dptr<T>()});
    });
  }
  void Backward(const BackwardArgs& args) override {
    for (size_t i = 0; i < args.in_grad.size(); ++i)
      ZeroBlob(Device{args.ctx.run_ctx}, args.req[i], args.in_grad[i]);
  }

 private:
  const PointBoxesParam param_;
};

}  // namespace mxtrain::point_boxes

MXTRAIN_KERNELS(point_boxes, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(
      ReferenceKernel<PointBoxesProperty, point_boxes::PointBoxes<Device>, Device>("PointBoxes"));
}
