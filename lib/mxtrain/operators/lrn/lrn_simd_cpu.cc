// SPDX-License-Identifier: Apache-2.0
// LRN of float32 by vectors, over plain arrays: some pixels of an image at a time, all of their
// channels in cache.
#include <algorithm>
#include <cmath>
#include <memory>

#include "mxtrain/base/math.h"
#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operator/vector_math.h"
#include "mxtrain/operators/lrn/lrn.h"

namespace mxtrain {
namespace {

constexpr int64_t kPixels = 64;  // at a time

struct Geometry {
  LRNParam param;
  int64_t images = 0, channels = 0, area = 0;

  int64_t groups() const { return CeilDivide(area, kPixels); }  // of pixels of an image
  float scale() const { return param.alpha / static_cast<float>(param.nsize); }
  // Of a thread, in Backward: a power and a term for every channel.
  int64_t room() const { return 2 * channels * kPixels; }
};

// Channels [first, last] of the window around channel c.
struct Window {
  int64_t first, last;
  Window(const Geometry& g, int64_t c)
      : first(std::max<int64_t>(c - g.param.nsize / 2, 0)),
        last(std::min<int64_t>(c + g.param.nsize / 2, g.channels - 1)) {}
};

// norm[i] = knorm + scale * the sum of the squares in the window of channel c. x: channel 0.
MXTRAIN_SIMD void NormLoop(const float* x, int64_t area, Window window, int64_t n, float scale,
                           float k, float* norm) {
  for (int64_t i = 0; i < n; ++i) norm[i] = 0;
  for (int64_t c = window.first; c <= window.last; ++c) {
    const float* from = x + c * area;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) norm[i] += from[i] * from[i];
  }
  for (int64_t i = 0; i < n; ++i) norm[i] = k + scale * norm[i];
}

// power[i] = norm[i]^-beta. Not zero or less, norm is.
MXTRAIN_SIMD void PowerLoop(const float* norm, float beta, int64_t n, float* power) {
  if (beta == 0.75f) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      const float root = std::sqrt(norm[i]);
      power[i] = 1.0f / (root * std::sqrt(root));
    }
    return;
  }
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) power[i] = vector_math::Pow(norm[i], -beta);
}

template <bool kAdd>
MXTRAIN_SIMD void ScaleLoop(const float* x, const float* power, int64_t n, float* y) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = (kAdd ? y[i] : 0.0f) + x[i] * power[i];
}

// term[i] = head * x * norm^(-beta - 1).
MXTRAIN_SIMD void TermLoop(const float* head, const float* x, const float* norm, const float* power,
                           int64_t n, float* term) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) term[i] = head[i] * x[i] * (power[i] / norm[i]);
}

// The gradient of a channel; `terms` of channel 0.
template <bool kAdd>
MXTRAIN_SIMD void GradientLoop(const float* head, const float* x, const float* power,
                               const float* terms, Window window, float factor, int64_t n,
                               float* gradient) {
  float sum[kPixels] = {};
  for (int64_t c = window.first; c <= window.last; ++c) {
    const float* term = terms + c * kPixels;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) sum[i] += term[i];
  }
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const float value = head[i] * power[i] - factor * x[i] * sum[i];
    gradient[i] = kAdd ? gradient[i] + value : value;
  }
}

class LRNSimd final : public Operator {
 public:
  explicit LRNSimd(const Geometry& geometry) : g_(geometry) {}

  void Forward(const ForwardArgs& args) override {
    const float* x = args.in_data[0].dptr<float>();
    float *y = args.out_data[0].dptr<float>(), *norms = args.out_data[1].dptr<float>();
    ForPixels([&](int64_t base, int64_t n, int) {
      float norm[kPixels], power[kPixels];
      for (int64_t c = 0; c < g_.channels; ++c) {
        const int64_t at = base + c * g_.area;
        NormLoop(x + base, g_.area, Window(g_, c), n, g_.scale(), g_.param.knorm, norm);
        SwitchReq(args.req[1], [&](auto accumulate) {
          for (int64_t i = 0; i < n; ++i)
            norms[at + i] = (accumulate() ? norms[at + i] : 0.0f) + norm[i];
        });
        SwitchReq(args.req[0], [&](auto accumulate) {
          PowerLoop(norm, g_.param.beta, n, power);
          ScaleLoop<accumulate()>(x + at, power, n, y + at);
        });
      }
    });
  }

  // The norms are computed again.
  void Backward(const BackwardArgs& args) override {
    const float *x = args.in_data[0].dptr<float>(), *head = args.out_grad[0].dptr<float>();
    float *gradient = args.in_grad[0].dptr<float>(), *room = args.ctx.workspace.dptr<float>();
    const float factor = 2 * g_.param.beta * g_.scale();
    SwitchReq(args.req[0], [&](auto accumulate) {
      ForPixels([&](int64_t base, int64_t n, int piece) {
        float* powers = room + piece * g_.room();
        float *terms = powers + g_.channels * kPixels, norm[kPixels];
        for (int64_t c = 0; c < g_.channels; ++c) {
          const int64_t at = base + c * g_.area;
          NormLoop(x + base, g_.area, Window(g_, c), n, g_.scale(), g_.param.knorm, norm);
          PowerLoop(norm, g_.param.beta, n, powers + c * kPixels);
          TermLoop(head + at, x + at, norm, powers + c * kPixels, n, terms + c * kPixels);
        }
        for (int64_t c = 0; c < g_.channels; ++c) {
          const int64_t at = base + c * g_.area;
          GradientLoop<accumulate()>(head + at, x + at, powers + c * kPixels, terms, Window(g_, c),
                                     factor, n, gradient + at);
        }
      });
    });
  }

 private:
  // f(offset of the first pixel in channel 0, number of pixels, piece).
  template <typename F>
  void ForPixels(const F& f) const {
    const int64_t grain = std::max<int64_t>(1, kParallelGrain / (8 * g_.channels * kPixels));
    ParallelForPieces(g_.images * g_.groups(), grain, [&](int64_t begin, int64_t end, int piece) {
      for (int64_t k = begin; k < end; ++k) {
        const int64_t first = k % g_.groups() * kPixels;
        f(k / g_.groups() * g_.channels * g_.area + first, std::min(kPixels, g_.area - first),
          piece);
      }
    });
  }

  const Geometry g_;
};

Expected<Plan, Refusal> PlanSimd(const OperatorProperty& base, const PlanRequest& request,
                                 Backend&) {
  const TShape& shape = request.in[0].shape;
  if (request.in[0].type != DType::kFloat32) return Refusal{"float32 only"};
  if (shape.Size() == 0) return Refusal{"empty array"};
  const Geometry g{static_cast<const LRNProperty&>(base).param(), shape[0], shape[1],
                   shape[2] * shape[3]};
  Plan plan = PlainPlan(base, request);
  if (request.needs_backward) {
    plan.backward_reads = BackwardReads{{true, false}, {true}, {false, false}};
    plan.backward_workspace =
        std::max(request.threads, 1) * g.room() * static_cast<int64_t>(sizeof(float));
  }
  plan.make = [g] { return std::make_unique<LRNSimd>(g); };
  return plan;
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(lrn_simd_cpu, registry) {
  registry.AddKernel({"LRN", mxtrain::DeviceType::kCPU, "simd", 110, mxtrain::PlanSimd});
}
