// SPDX-License-Identifier: Apache-2.0
// LayerNorm, RMSNorm and _NormalizeRows of float32 and bfloat16 along the last axes by vectors.
//
// The gradients of gamma and beta are float sums over slices of at most kMostRows rows, added up in
// double in the order of the slices. How rows are divided depends on their number alone.
#include <algorithm>
#include <cstdint>
#include <memory>

#include "mxtrain/base/math.h"
#include "mxtrain/device/cpu/cache.h"
#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/layer_norm/row_norm_kernels.h"

namespace mxtrain::layer_norm {
namespace {

using P = RowNormProperty;

constexpr int64_t kLeastRows = 8, kMostRows = 64, kSlicesWanted = 64;

// What a plan decided.
struct Planned {
  RowNorm norm = RowNorm::kLayer;
  double eps = 0;
  int64_t rows = 0, length = 0;
  bool stream = false;  // arrays are larger than the caches

  int64_t rows_of_slice() const {
    if (!HasGamma(norm)) return kRowsTogether;  // no sums
    return RoundUp(std::clamp(CeilDivide(rows, kSlicesWanted), kLeastRows, kMostRows),
                   kRowsTogether);
  }
  int64_t slices() const { return CeilDivide(rows, rows_of_slice()); }
  // The sums of all slices, [slices, 2, length].
  int64_t SumsBytes() const { return slices() * 2 * length * static_cast<int64_t>(sizeof(float)); }
};

// totals[k] = the sum of the columns [begin, begin + n) of `count` rows at a distance of `step`.
MXTRAIN_SIMD void SumColumns(const float* sums, int64_t count, int64_t step, int64_t n,
                             double* totals) {
  for (int64_t k = 0; k < n; ++k) totals[k] = 0;
  for (int64_t row = 0; row < count; ++row) {
    const float* from = sums + row * step;
    for (int64_t k = 0; k < n; ++k) totals[k] += static_cast<double>(from[k]);
  }
}

template <typename T>
class RowNormSimd final : public Operator {
 public:
  explicit RowNormSimd(const Planned& planned) : s_(planned) {}

  void Forward(const ForwardArgs& args) override {
    ForwardRows<T> rows;
    rows.length = s_.length;
    rows.eps = s_.eps;
    rows.x = args.in_data[P::kData].dptr<T>();
    if (HasGamma(s_.norm)) rows.gamma = args.in_data[P::kGamma].dptr<float>();
    if (HasBeta(s_.norm)) rows.beta = args.in_data[P::kBeta].dptr<float>();
    if (args.req[P::kOutput] != OpReqType::kNullOp) rows.y = args.out_data[P::kOutput].dptr<T>();
    rows.stream = args.req[P::kOutput] == OpReqType::kWriteTo && Streams(rows.y);
    if (!args.ctx.saved.empty()) rows.saved = args.ctx.saved[0].dptr<RowMoments<float>>();
    if (args.out_data.size() > 1) {
      if (args.req[P::kMean] != OpReqType::kNullOp)
        rows.mean = args.out_data[P::kMean].dptr<float>();
      if (args.req[P::kDeviation] != OpReqType::kNullOp)
        rows.deviation = args.out_data[P::kDeviation].dptr<float>();
    }
    ParallelFor(s_.rows, std::max<int64_t>(1, kParallelGrain / s_.length),
                [&](int64_t begin, int64_t end) { kernels_.forward(s_.norm, rows, begin, end); });
  }

  void Backward(const BackwardArgs& args) override {
    const TBlob& value = ReadsOutput(s_.norm) ? args.out_data[P::kOutput] : args.in_data[P::kData];
    BackwardRows<T> rows;
    rows.length = s_.length;
    rows.head = args.out_grad[P::kOutput].dptr<T>();
    rows.value = value.dptr<T>();
    if (HasGamma(s_.norm)) rows.gamma = args.in_data[P::kGamma].dptr<float>();
    rows.moments = args.ctx.saved[0].dptr<RowMoments<float>>();
    const OpReqType req = args.req[P::kData];
    if (req != OpReqType::kNullOp) rows.dx = args.in_grad[P::kData].dptr<T>();
    rows.add = req == OpReqType::kAddTo;
    rows.stream = req == OpReqType::kWriteTo && Streams(rows.dx);

    const bool wants_gamma = Wants(args, P::kGamma), wants_beta = Wants(args, P::kBeta);
    float* sums = wants_gamma || wants_beta ? args.ctx.workspace.dptr<float>() : nullptr;
    if (!rows.dx && !sums) return;
    const int64_t step = s_.rows_of_slice();
    ParallelFor(s_.slices(), std::max<int64_t>(1, kParallelGrain / (step * s_.length)),
                [&](int64_t begin, int64_t end) {
                  for (int64_t slice = begin; slice < end; ++slice) {
                    kernels_.backward(s_.norm, rows, slice * step,
                                      std::min(s_.rows, (slice + 1) * step),
                                      sums ? sums + slice * 2 * s_.length : nullptr);
                  }
                });
    if (wants_gamma) AddSlices(sums, args.req[P::kGamma], args.in_grad[P::kGamma]);
    if (wants_beta) AddSlices(sums + s_.length, args.req[P::kBeta], args.in_grad[P::kBeta]);
  }

 private:
  bool Wants(const BackwardArgs& args, P::Argument argument) const {
    return static_cast<size_t>(argument) < args.req.size() &&
           args.req[argument] != OpReqType::kNullOp;
  }

  // Streaming stores take whole vectors of floats at multiples of their size.
  bool Streams(const T* to) const {
    constexpr int64_t kAlignment = 64;
    return s_.stream && sizeof(T) == sizeof(float) &&
           s_.length * static_cast<int64_t>(sizeof(float)) % kAlignment == 0 &&
           reinterpret_cast<uintptr_t>(to) % kAlignment == 0;
  }

  void AddSlices(const float* sums, OpReqType req, const TBlob& gradient) const {
    constexpr int64_t kAtOnce = 256;
    float* to = gradient.dptr<float>();
    ParallelFor(s_.length, std::max<int64_t>(64, kParallelGrain / s_.slices()),
                [&](int64_t begin, int64_t end) {
                  double totals[kAtOnce];
                  for (; begin < end; begin += kAtOnce) {
                    const int64_t n = std::min(kAtOnce, end - begin);
                    SumColumns(sums + begin, s_.slices(), 2 * s_.length, n, totals);
                    for (int64_t k = 0; k < n; ++k)
                      Assign(req, to, begin + k, static_cast<float>(totals[k]));
                  }
                });
  }

  const Planned s_;
  const Kernels<T>& kernels_ = KernelsOf<T>();
};

Expected<Plan, Refusal> PlanSimd(const OperatorProperty& base, const PlanRequest& request,
                                 Backend&) {
  const auto& property = static_cast<const RowNormProperty&>(base);
  const TensorSpec& data = request.in[P::kData];
  if (data.type != DType::kFloat32 && data.type != DType::kBfloat16)
    return Refusal{"float32 and bfloat16 only"};
  if (data.shape.Size() == 0) return Refusal{"empty array"};
  const auto adds = [](OpReqType req) { return req == OpReqType::kAddTo; };
  if (std::any_of(request.out_req.begin(), request.out_req.end(), adds))
    return Refusal{"kAddTo of an output is not supported"};
  const RowView view = property.View(data.shape);
  if (view.inner > 1) return Refusal{"the last axis only"};

  Planned planned{property.norm(), property.eps(), view.outer, view.length};
  planned.stream = data.shape.Size() * SizeOf(data.type) > LastLevelCacheBytes();
  Plan plan = PlainPlan(base, request);
  if (request.needs_backward) {
    plan.saved = {planned.rows * MomentsBytes(data.type)};
    if (HasGamma(planned.norm)) plan.backward_workspace = planned.SumsBytes();
  }
  plan.make = [planned, narrow = data.type == DType::kBfloat16]() -> std::unique_ptr<Operator> {
    if (narrow) return std::make_unique<RowNormSimd<bfloat16>>(planned);
    return std::make_unique<RowNormSimd<float>>(planned);
  };
  return plan;
}

}  // namespace
}  // namespace mxtrain::layer_norm

MXTRAIN_OPERATOR(layer_norm_simd_cpu, registry) {
  for (const char* name : {"LayerNorm", "RMSNorm", "_NormalizeRows"}) {
    registry.AddKernel(
        {name, mxtrain::DeviceType::kCPU, "simd", 100, mxtrain::layer_norm::PlanSimd});
  }
}
