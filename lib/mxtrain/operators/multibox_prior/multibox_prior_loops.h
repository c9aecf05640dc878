// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <memory>

#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operators/multibox_prior/multibox_prior.h"

namespace mxtrain::multibox_prior {

// Anchors of one size and ratio, of every cell.
template <typename T>
struct PlaceAnchor {
  using C = ComputeOf<T>;
  struct Axis {
    C step, offset, half;  // half of the anchor's extent
    MXTRAIN_HD C Center(int64_t cell) const { return (static_cast<C>(cell) + offset) * step; }
  };
  Axis y, x;
  int64_t width;          // of the map
  int64_t number, count;  // of the anchor among those of its cell
  bool clip;
  OpReqType req;
  T* out;

  MXTRAIN_HD C Within(C at) const { return !clip ? at : at < C(0) ? C(0) : at > C(1) ? C(1) : at; }
  MXTRAIN_HD void operator()(int64_t cell) const {
    const C row = y.Center(cell / width), column = x.Center(cell % width);
    const C corners[4] = {column - x.half, row - y.half, column + x.half, row + y.half};
    for (int64_t k = 0; k < 4; ++k)
      Assign(req, out, (cell * count + number) * 4 + k, Within(corners[k]));
  }
};

template <typename Device>
class MultiBoxPrior final : public Operator {
 public:
  explicit MultiBoxPrior(const MultiBoxPriorParam& param) : param_(param) {}

  void Forward(const ForwardArgs& args) override {
    if (args.req[0] == OpReqType::kNullOp) return;
    const TBlob& out = args.out_data[0];
    const TShape& data = args.in_data[0].shape;
    const int64_t height = data[MultiBoxPriorProperty::kHeight],
                  width = data[MultiBoxPriorProperty::kWidth];
    SwitchFloating(out.type, "MultiBoxPrior", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const int64_t count = param_.AnchorsPerCell();
      for (int64_t number = 0; number < count; ++number) {
        PlaceAnchor<T> anchor = AnchorOf<T>(number, height, width);
        anchor.count = count;
        anchor.req = args.req[0];
        anchor.out = out.dptr<T>();
        Launch(Device{args.ctx.run_ctx}, height * width, anchor);
      }
    });
  }

 private:
  template <typename T>
  PlaceAnchor<T> AnchorOf(int64_t number, int64_t height, int64_t width) const {
    using C = ComputeOf<T>;
    const auto sizes = static_cast<int64_t>(param_.sizes.size());
    const C size = static_cast<C>(param_.sizes[static_cast<size_t>(number < sizes ? number : 0)]);
    const int64_t turn = number < sizes ? 0 : number - sizes + 1;
    const C root = std::sqrt(static_cast<C>(param_.ratios[static_cast<size_t>(turn)]));
    const C rows = static_cast<C>(height), columns = static_cast<C>(width);
    const bool given = param_.steps[0] > 0 && param_.steps[1] > 0;
    PlaceAnchor<T> anchor{};
    anchor.y = {given ? static_cast<C>(param_.steps[0]) : C(1) / rows,
                static_cast<C>(param_.offsets[0]), size / root / C(2)};
    anchor.x = {given ? static_cast<C>(param_.steps[1]) : C(1) / columns,
                static_cast<C>(param_.offsets[1]), size * rows / columns * root / C(2)};
    anchor.width = width;
    anchor.number = number;
    anchor.clip = param_.clip;
    return anchor;
  }

  const MultiBoxPriorParam param_;
};

}  // namespace mxtrain::multibox_prior

MXTRAIN_KERNELS(multibox_prior, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(
      ForwardKernel<MultiBoxPriorProperty, multibox_prior::MultiBoxPrior<Device>, Device>(
          "_contrib_MultiBoxPrior"));
}
