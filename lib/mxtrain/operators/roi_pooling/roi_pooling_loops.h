// SPDX-License-Identifier: Apache-2.0
#pragma once
// ROIPooling in loops, written once for both devices: Device is OnCpu or OnGpu.
#include <cmath>
#include <limits>
#include <memory>

#include "mxtrain/operator/identity.h"
#include "mxtrain/operator/plane_bands.h"
#include "mxtrain/operator/rows.h"
#include "mxtrain/operators/roi_pooling/regions.h"
#include "mxtrain/operators/roi_pooling/roi_pooling.h"

namespace mxtrain::roi_pooling {

// A region on the feature map, in cells of the grid. Only for numbers that describe a region.
struct Region {
  int64_t image, x, y, width, height;

  template <typename R>
  MXTRAIN_HD Region(const R* roi, double scale)
      : image(static_cast<int64_t>(roi[0])),
        x(Round(roi[1], scale)),
        y(Round(roi[2], scale)),
        width(1),
        height(1) {
    const int64_t far_x = Round(roi[3], scale), far_y = Round(roi[4], scale);
    if (far_x > x) width = far_x - x + 1;
    if (far_y > y) height = far_y - y + 1;
  }
  // Clamps numbers far beyond every map, so that sizes do not overflow.
  template <typename R>
  MXTRAIN_HD static int64_t Round(R v, double scale) {
    constexpr double kFarthest = int64_t{1} << 60;
    const double at = std::round(static_cast<double>(v) * scale);
    return static_cast<int64_t>(at < -kFarthest ? -kFarthest : at > kFarthest ? kFarthest : at);
  }
};

// Cell i of `cells` over [start, start + size), clipped to [0, limit).
struct Span {
  int64_t begin, end;
  MXTRAIN_HD Span(int64_t i, int64_t cells, int64_t start, int64_t size, int64_t limit)
      : begin(Clip(start + Part(i, cells, size, 0), limit)),
        end(Clip(start + Part(i + 1, cells, size, cells - 1), limit)) {}
  // (i size + rest) / cells without overflow of the product.
  MXTRAIN_HD static int64_t Part(int64_t i, int64_t cells, int64_t size, int64_t rest) {
    return size / cells * i + (size % cells * i + rest) / cells;
  }
  MXTRAIN_HD static int64_t Clip(int64_t at, int64_t limit) {
    return at < 0 ? 0 : at > limit ? limit : at;
  }
};

// R: type of the regions, and of sums.
template <typename T>
struct OutputElement {
  using R = AccumulatorOf<T>;
  TShape data_shape, pooled;
  double scale;
  const T* data;
  const R* rois;
  T* out;
  int32_t* places;
  OpReqType req, places_req;

  MXTRAIN_HD void operator()(int64_t at) const {
    const int64_t h = pooled[2], w = pooled[3], height = data_shape[2], width = data_shape[3];
    const int64_t j = at % w, i = at / w % h, c = at / (w * h) % pooled[1],
                  r = at / (w * h * pooled[1]);
    const RoiStatus status = StatusOf(rois + r * 5, data_shape[0]);
    int64_t best = -1;
    R value = status == RoiStatus::kInvalid ? std::numeric_limits<R>::quiet_NaN() : R(0);
    if (status == RoiStatus::kValid) {
      const Region region(rois + r * 5, scale);
      const T* x = data + (region.image * data_shape[1] + c) * height * width;
      const Span rows(i, h, region.y, region.height, height),
          columns(j, w, region.x, region.width, width);
      for (int64_t y = rows.begin; y < rows.end; ++y) {
        for (int64_t k = columns.begin; k < columns.end; ++k) {
          const R cell(x[y * width + k]);
          if (best >= 0 && !(cell > value || cell != cell)) continue;
          best = y * width + k;
          value = cell;
        }
      }
    }
    if (req != OpReqType::kNullOp) Assign(req, out, at, value);
    if (places_req != OpReqType::kNullOp)
      Assign(places_req, places, at, static_cast<int32_t>(best));
  }
};

// The gradient of one channel of one image: overlapping regions add in order.
template <typename T>
struct GradientPlane {
  using R = AccumulatorOf<T>;
  TShape data_shape, pooled;
  const T* head;
  const R* rois;
  const int32_t* places;
  R* sums;  // of the shape of the data

  template <typename Team>
  MXTRAIN_HD void operator()(const Team&, int64_t plane) const {
    const int64_t n = plane / data_shape[1], c = plane % data_shape[1],
                  size = data_shape[2] * data_shape[3], cells = pooled[2] * pooled[3];
    R* to = sums + plane * size;
    for (int64_t i = 0; i < size; ++i) to[i] = 0;
    for (int64_t r = 0; r < pooled[0]; ++r) {
      if (StatusOf(rois + r * 5, data_shape[0]) != RoiStatus::kValid ||
          static_cast<int64_t>(rois[r * 5]) != n)
        continue;
      const int64_t first = (r * data_shape[1] + c) * cells;
      for (int64_t i = first; i < first + cells; ++i) {
        if (places[i] >= 0) to[places[i]] += R(head[i]);
      }
    }
  }
};

template <typename Device>
class ROIPooling final : public Operator {
 public:
  explicit ROIPooling(const ROIPoolingParam& param) : scale_(param.spatial_scale) {}

  void Forward(const ForwardArgs& args) override {
    const Device device{args.ctx.run_ctx};
    SwitchFloating(args.in_data[0].type, "ROIPooling", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const auto* rois = args.in_data[1].dptr<AccumulatorOf<T>>();
      CheckRegions(device, "ROIPooling", rois, args.in_data[1].shape[0], args.in_data[0].shape[0]);
      Launch(device, args.out_data[0].Size(),
             OutputElement<T>{args.in_data[0].shape, args.out_data[0].shape, scale_,
                              args.in_data[0].dptr<T>(), rois, args.out_data[0].dptr<T>(),
                              args.out_data[1].dptr<int32_t>(), args.req[0], args.req[1]});
    });
  }

  void Backward(const BackwardArgs& args) override {
    if (args.req[0] == OpReqType::kNullOp) return;
    const Device device{args.ctx.run_ctx};
    SwitchFloating(args.in_grad[0].type, "ROIPooling", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using R = AccumulatorOf<T>;
      const TShape &data = args.in_grad[0].shape, &pooled = args.out_grad[0].shape;
      R* sums = args.ctx.workspace.dptr<R>();
      ForColumns(
          device, data[0] * data[1],
          data[2] * data[3] + pooled.Size() / std::max<int64_t>(data[1], 1),
          GradientPlane<T>{data, pooled, args.out_grad[0].dptr<T>(), args.in_data[1].dptr<R>(),
                           args.out_data[1].dptr<int32_t>(), sums});
      StoreSums<T>(device, sums, args.req[0], args.in_grad[0]);
    });
  }

 private:
  double scale_;
};

template <typename Device>
Expected<Plan, Refusal> MakePlan(const OperatorProperty& base, const PlanRequest& request,
                                 Backend&) {
  const TShape& data = request.in[0].shape;
  if (data[2] * data[3] > std::numeric_limits<int32_t>::max())
    return Refusal{"an image of more than 2^31 - 1 elements"};
  Plan plan = PlainPlan(base, request);
  const int64_t width = request.in[0].type == DType::kFloat64 ? 8 : 4;
  if (request.needs_backward) plan.backward_workspace = request.in[0].shape.Size() * width;
  plan.make = [param = static_cast<const ROIPoolingProperty&>(base).param()] {
    return std::make_unique<ROIPooling<Device>>(param);
  };
  return plan;
}

}  // namespace mxtrain::roi_pooling

MXTRAIN_KERNELS(roi_pooling, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(LastKernel<Device>("ROIPooling", roi_pooling::MakePlan<Device>));
}
