#include <algorithm>
#include <cmath>
#include <memory>

#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/roi_pooling/roi_pooling.h"

namespace mxtrain {
namespace {

// A region on the feature map, in cells of the grid.
struct Region {
  int64_t image = 0, x = 0, y = 0, width = 1, height = 1;

  template <typename R>
  Region(const R* roi, double scale) {
    const auto round = [scale](R v) { return static_cast<int64_t>(std::round(static_cast<double>(v) * scale)); };
    image = static_cast<int64_t>(roi[0]);
    x = round(roi[1]);
    y = round(roi[2]);
    width = std::max<int64_t>(round(roi[3]) - x + 1, 1);
    height = std::max<int64_t>(round(roi[4]) - y + 1, 1);
  }
};

// Cell i of `cells` over [start, start + size), clipped to [0, limit).
struct Span {
  int64_t begin, end;
  Span(int64_t i, int64_t cells, int64_t start, int64_t size, int64_t limit)
      : begin(std::clamp<int64_t>(start + i * size / cells, 0, limit)),
        end(std::clamp<int64_t>(start + ((i + 1) * size + cells - 1) / cells, 0, limit)) {}
};

class ROIPoolingCpu final : public Operator {
 public:
  explicit ROIPoolingCpu(const ROIPoolingParam& param) : scale_(param.spatial_scale) {}

  void Forward(const OpContext&, std::span<const TBlob> in, std::span<const OpReqType> req, std::span<const TBlob> out,
               std::span<const TBlob>) override {
    SwitchFloating(in[0].type, "ROIPooling", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using R = AccumulatorOf<T>;
      CheckImages(in[1].dptr<R>(), in[1].shape[0], in[0].shape[0]);
      ParallelFor(out[0].shape[0] * out[0].shape[1], 1, [&](int64_t begin, int64_t end) {
        for (int64_t plane = begin; plane < end; ++plane) PoolPlane<T, R>(in, req, out, plane / out[0].shape[1], plane % out[0].shape[1]);
      });
    });
  }

  void Backward(const OpContext& ctx, std::span<const TBlob> out_grad, std::span<const TBlob> in, std::span<const TBlob> out,
                std::span<const OpReqType> req, std::span<const TBlob> in_grad, std::span<const TBlob>) override {
    if (req[0] == OpReqType::kNullOp) return;
    SwitchFloating(in_grad[0].type, "ROIPooling", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using R = AccumulatorOf<T>;
      const TShape& data = in_grad[0].shape;
      const TShape& pooled = out_grad[0].shape;
      const R* rois = in[1].dptr<R>();
      R* sums = ctx.workspace.dptr<R>();
      const int64_t plane = data[2] * data[3], cells = pooled[2] * pooled[3];
      // A channel belongs to one thread, so that regions that overlap add in their order.
      ParallelFor(data[1], 1, [&](int64_t begin, int64_t end) {
        for (int64_t c = begin; c < end; ++c) {
          for (int64_t n = 0; n < data[0]; ++n) std::fill_n(sums + (n * data[1] + c) * plane, plane, R(0));
          for (int64_t r = 0; r < pooled[0]; ++r) {
            const T* g = out_grad[0].dptr<T>() + (r * data[1] + c) * cells;
            const int32_t* at = out[1].dptr<int32_t>() + (r * data[1] + c) * cells;
            R* to = sums + (static_cast<int64_t>(rois[r * 5]) * data[1] + c) * plane;
            for (int64_t i = 0; i < cells; ++i) {
              if (at[i] >= 0) to[at[i]] += R(g[i]);
            }
          }
        }
      });
      Map<T>(ctx.run_ctx, in_grad[0], req[0], [sums](int64_t i) { return sums[i]; });
    });
  }

 private:
  template <typename R>
  static void CheckImages(const R* rois, int64_t count, int64_t images) {
    for (int64_t r = 0; r < count; ++r) {
      if (rois[r * 5] >= 0 && rois[r * 5] < static_cast<R>(images)) continue;
      Throw(ErrorKind::kData, "ROIPooling: region {} names image {}, but the batch has {}", r, static_cast<double>(rois[r * 5]), images);
    }
  }

  template <typename T, typename R>
  void PoolPlane(std::span<const TBlob> in, std::span<const OpReqType> req, std::span<const TBlob> out, int64_t r, int64_t c) const {
    const TShape& data = in[0].shape;
    const int64_t h = out[0].shape[2], w = out[0].shape[3];
    const Region region(in[1].dptr<R>() + r * 5, scale_);
    const T* x = in[0].dptr<T>() + (region.image * data[1] + c) * data[2] * data[3];
    for (int64_t i = 0; i < h; ++i) {
      const Span rows(i, h, region.y, region.height, data[2]);
      for (int64_t j = 0; j < w; ++j) {
        const Span columns(j, w, region.x, region.width, data[3]);
        int64_t best = -1;
        for (int64_t y = rows.begin; y < rows.end; ++y) {
          for (int64_t k = columns.begin; k < columns.end; ++k) {
            if (best < 0 || x[y * data[3] + k] > x[best]) best = y * data[3] + k;
          }
        }
        const int64_t to = ((r * data[1] + c) * h + i) * w + j;
        if (req[0] != OpReqType::kNullOp) Assign(req[0], out[0].dptr<T>(), to, best < 0 ? R(0) : R(x[best]));
        if (req[1] != OpReqType::kNullOp) Assign(req[1], out[1].dptr<int32_t>(), to, static_cast<int32_t>(best));
      }
    }
  }

  double scale_;
};

Expected<Plan, Refusal> PlanReference(const OperatorProperty& base, const PlanRequest& request, Backend&) {
  Plan plan = PlainPlan(base, request);
  const int64_t width = request.in[0].type == DType::kFloat64 ? 8 : 4;
  if (request.needs_backward) plan.backward_workspace = request.in[0].shape.Size() * width;
  plan.make = [param = static_cast<const ROIPoolingProperty&>(base).param()] { return std::make_unique<ROIPoolingCpu>(param); };
  return plan;
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(roi_pooling_cpu, registry) {
  registry.AddRow({"ROIPooling", mxtrain::DeviceType::kCPU, "ref", mxtrain::kRefRank, mxtrain::PlanReference});
}
