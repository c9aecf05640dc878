// The meaning of Pooling in loops. A maximum leaves its place in the image behind for the gradient.
#include <cmath>
#include <limits>

#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/pooling/pooling.h"

namespace mxtrain {
namespace {

template <typename T>
AccumulatorOf<T> Lowest() {
  if constexpr (std::is_same_v<T, float16>) {
    return -65504.0f;
  } else {
    return std::numeric_limits<AccumulatorOf<T>>::lowest();
  }
}

struct Pooling2D {
  PoolingParam param;
  PoolingAxis h, w;

  // f(cell of the image) for every real cell of a window.
  template <typename F>
  void ForCells(int64_t y, int64_t x, F f) const {
    for (int64_t i = h.First(y); i < h.Last(y); ++i) {
      for (int64_t j = w.First(x); j < w.Last(x); ++j) f(i * w.in + j);
    }
  }
  // f(y, x) for every window with the real cell (i, j).
  template <typename F>
  void ForWindows(int64_t i, int64_t j, F f) const {
    for (int64_t y = h.FirstWindow(i); y < h.LastWindow(i); ++y) {
      for (int64_t x = w.FirstWindow(j); x < w.LastWindow(j); ++x) f(y, x);
    }
  }
  int64_t Divisor(int64_t y, int64_t x) const { return PoolingDivisor(param, h, w, y, x); }

  // `place`: where the maximum lies in the image, -1 in an empty window.
  template <typename T>
  AccumulatorOf<T> Max(const T* image, int64_t y, int64_t x, int32_t* place) const {
    AccumulatorOf<T> best = Lowest<T>();
    *place = -1;
    ForCells(y, x, [&](int64_t cell) {
      const AccumulatorOf<T> value = image[cell];
      if (*place >= 0 && !(value > best)) return;  // the first of equals wins
      best = value;
      *place = static_cast<int32_t>(cell);
    });
    return best;
  }
  template <typename T>
  AccumulatorOf<T> Mean(const T* image, int64_t y, int64_t x) const {
    AccumulatorOf<T> sum = 0;
    ForCells(y, x, [&](int64_t cell) { sum += AccumulatorOf<T>(image[cell]); });
    return sum / static_cast<AccumulatorOf<T>>(Divisor(y, x));
  }
  template <typename T>
  AccumulatorOf<T> Norm(const T* image, int64_t y, int64_t x) const {
    AccumulatorOf<T> sum = 0;
    ForCells(y, x, [&](int64_t cell) { sum += Power(std::abs(AccumulatorOf<T>(image[cell])), *param.p_value); });
    return *param.p_value == 1 ? sum : *param.p_value == 2 ? std::sqrt(sum) : std::cbrt(sum);
  }
  template <typename A>
  static A Power(A x, int p) {
    return p == 0 ? A(1) : p == 1 ? x : p == 2 ? x * x : x * x * x;
  }
};

// f(image, y, x) for every element of [N, C, H, W], written as `req` says.
template <typename T, typename F>
void ForEachCell(const TBlob& array, OpReqType req, F f) {
  if (req == OpReqType::kNullOp) return;
  const int64_t height = array.shape[2], width = array.shape[3];
  T* data = array.dptr<T>();
  ParallelFor(array.Size(), 1024, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) Assign(req, data, at, f(at / (height * width), at / width % height, at % width));
  });
}

class PoolingReference final : public Operator {
 public:
  explicit PoolingReference(const PoolingParam& param) : param_(param) {}

  void Forward(const OpContext& ctx, std::span<const TBlob> in, std::span<const OpReqType> req, std::span<const TBlob> out,
               std::span<const TBlob>) override {
    const Pooling2D p = Windows(in[0].shape, out[0].shape);
    const int64_t area = p.h.in * p.w.in, windows = p.h.out * p.w.out;
    int32_t* places = ctx.saved.empty() ? nullptr : ctx.saved[0].dptr<int32_t>();
    SwitchFloating(in[0].type, "Pooling", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* data = in[0].dptr<T>();
      ForEachCell<T>(out[0], req[0], [&](int64_t image, int64_t y, int64_t x) {
        const T* from = data + image * area;
        if (param_.pool_type == PoolingParam::kLp) return p.Norm(from, y, x);
        if (param_.pool_type != PoolingParam::kMax) return p.Mean(from, y, x);
        int32_t place;
        const AccumulatorOf<T> best = p.Max(from, y, x, &place);
        if (places) places[image * windows + y * p.w.out + x] = place;
        return best;
      });
    });
  }

  void Backward(const OpContext& ctx, std::span<const TBlob> out_grad, std::span<const TBlob> in, std::span<const TBlob> out,
                std::span<const OpReqType> req, std::span<const TBlob> in_grad, std::span<const TBlob>) override {
    const Pooling2D p = Windows(in_grad[0].shape, out_grad[0].shape);
    const int64_t windows = p.h.out * p.w.out;
    const int32_t* places = ctx.saved.empty() ? nullptr : ctx.saved[0].dptr<int32_t>();
    SwitchFloating(in_grad[0].type, "Pooling", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using A = AccumulatorOf<T>;
      const T* head = out_grad[0].dptr<T>();
      const T* data = in[0].dptr<T>();
      const T* norm = out[0].dptr<T>();
      ForEachCell<T>(in_grad[0], req[0], [&](int64_t image, int64_t i, int64_t j) {
        const int64_t cell = i * p.w.in + j;
        A sum = 0;
        p.ForWindows(i, j, [&](int64_t y, int64_t x) {
          const int64_t at = image * windows + y * p.w.out + x;
          if (param_.pool_type == PoolingParam::kMax) {
            if (places[at] == cell) sum += A(head[at]);
          } else if (param_.pool_type == PoolingParam::kLp) {
            sum += A(head[at]) * NormSlope(A(data[image * p.h.in * p.w.in + cell]), A(norm[at]));
          } else {
            sum += A(head[at]) / static_cast<A>(p.Divisor(y, x));
          }
        });
        return sum;
      });
    });
  }

 private:
  Pooling2D Windows(const TShape& data, const TShape& output) const {
    return {param_, AxisOf(param_, data, output, 0), AxisOf(param_, data, output, 1)};
  }
  // d norm / d x = sign(x) (|x| / norm)^(p - 1); 0 at the kink.
  template <typename A>
  A NormSlope(A x, A norm) const {
    if (x == 0 || norm == 0) return 0;
    return std::copysign(Pooling2D::Power(std::abs(x) / norm, *param_.p_value - 1), x);
  }

  PoolingParam param_;
};

Expected<Plan, Refusal> PlanReference(const OperatorProperty& base, const PlanRequest& request, Backend&) {
  const PoolingParam& param = static_cast<const PoolingProperty&>(base).param();
  Plan plan = PlainPlan(base, request);
  if (request.needs_backward && param.pool_type == PoolingParam::kMax) {
    plan.saved = {request.out[0].shape.Size() * static_cast<int64_t>(sizeof(int32_t))};
    plan.backward_reads = BackwardReads{{true}, {false}, {false}};
  }
  plan.make = [param] { return std::make_unique<PoolingReference>(param); };
  return plan;
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(pooling_cpu, registry) {
  registry.AddRow({"Pooling", mxtrain::DeviceType::kCPU, "ref", mxtrain::kRefRank, mxtrain::PlanReference});
}
