// SPDX-License-Identifier: Apache-2.0
// GroupNorm and InstanceNorm of float32 and 16-bit floating types in one pass over each group, by
// vectors. Compiled once per instruction set; the best supported set is selected at run time.
//
// A row is a group of one sample, which lies together. It has `pieces` of equal length, each with
// one element of gamma and beta: its channels, or the whole row if gamma is per group.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mxtrain/operators/group_norm/group_norm_simd_cpu.cc"
#include <hwy/foreach_target.h>  // before the others

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "mxtrain/operators/group_norm/group_kernels.h"
#include "mxtrain/operators/softmax/row_vectors.h"

#include "mxtrain/operators/layer_norm/row_moments_vectors.h"  // after row_vectors.h

HWY_BEFORE_NAMESPACE();
namespace mxtrain::group_norm {
namespace HWY_NAMESPACE {
using namespace row_vectors::HWY_NAMESPACE;
using namespace row_moments::HWY_NAMESPACE;

template <typename T>
void Forward(const ForwardGroups<T>& g, int64_t begin, int64_t end) {
  const GroupView& v = g.view;
  for (int64_t row = begin; row < end; ++row) {
    const T* x = g.x + row * v.length();
    const auto [mean, deviation] = MomentsOf<true>(x, v.length(), g.eps);
    const auto moments = Saved::Of(mean, deviation);
    if (g.saved) g.saved[row] = moments;
    if (g.mean) g.mean[row] = static_cast<T>(static_cast<float>(mean));
    if (g.deviation) g.deviation[row] = static_cast<T>(static_cast<float>(deviation));
    if (!g.y) continue;
    T* y = g.y + row * v.length();
    const Vector center = Of(moments.center);
    for (int64_t piece = 0; piece < v.pieces; ++piece) {
      const int64_t scale = v.ScaleOf(row, piece);
      const float gamma = static_cast<float>(g.gamma[scale]);
      const Vector factor = Of(moments.inverse * gamma),
                   offset = Of(moments.shift * gamma + static_cast<float>(g.beta[scale]));
      ForVectors(piece * v.piece, (piece + 1) * v.piece, [&](auto whole, int64_t k, int64_t count) {
        const Vector distance = hn::Sub(Read<whole()>(x + k, count), center);
        Write<whole()>(hn::MulAdd(distance, factor, offset), y + k, count);
      });
    }
  }
}

// The normalized row.
struct Normal {
  Vector center, inverse, shift;
  explicit Normal(const Saved& saved)
      : center(Of(saved.center)), inverse(Of(saved.inverse)), shift(Of(saved.shift)) {}
  HWY_INLINE Vector operator()(Vector x) const {
    return hn::MulAdd(hn::Sub(x, center), inverse, shift);
  }
};

// Sums over the elements [begin, end) of a row.
template <typename T>
HWY_INLINE PieceSums SumsOf(const T* head, const T* x, const Normal& normal, int64_t begin,
                            int64_t end) {
  PieceSums result;
  for (; begin < end; begin += layer_norm::kBlock) {
    Vector sum = hn::Zero(Tag()), product = sum;
    ForVectors(begin, std::min(end, begin + layer_norm::kBlock),
               [&](auto whole, int64_t k, int64_t count) {
                 const Vector g = Read<whole()>(head + k, count);
                 Vector n = normal(Read<whole()>(x + k, count));
                 if constexpr (!whole()) n = KeepFirst(n, count);
                 sum = hn::Add(sum, g);
                 product = hn::MulAdd(g, n, product);
               });
    result.head += static_cast<double>(Total(sum));
    result.product += static_cast<double>(Total(product));
  }
  return result;
}

template <typename T>
void Backward(const BackwardGroups<T>& g, int64_t begin, int64_t end) {
  const GroupView& v = g.view;
  for (int64_t row = begin; row < end; ++row) {
    const T *x = g.x + row * v.length(), *head = g.head + row * v.length();
    const Saved& saved = g.saved[row];
    const Normal normal(saved);
    PieceSums all;
    for (int64_t piece = 0; piece < v.pieces; ++piece) {
      const PieceSums sums = SumsOf(head, x, normal, piece * v.piece, (piece + 1) * v.piece);
      g.sums[row * v.pieces + piece] = sums;
      const double gamma = static_cast<double>(static_cast<float>(g.gamma[v.ScaleOf(row, piece)]));
      all.head += gamma * sums.head;
      all.product += gamma * sums.product;
    }
    if (!g.dx) continue;
    T* dx = g.dx + row * v.length();
    const double length = static_cast<double>(v.length());
    const Vector mean = Of(static_cast<float>(all.head / length)),
                 along = Of(static_cast<float>(all.product / length));
    for (int64_t piece = 0; piece < v.pieces; ++piece) {
      const Vector gamma = Of(static_cast<float>(g.gamma[v.ScaleOf(row, piece)]));
      ForVectors(piece * v.piece, (piece + 1) * v.piece, [&](auto whole, int64_t k, int64_t count) {
        const Vector n = normal(Read<whole()>(x + k, count)),
                     slope = hn::MulSub(Read<whole()>(head + k, count), gamma, mean);
        Vector value = hn::Mul(hn::NegMulAdd(n, along, slope), normal.inverse);
        if (g.add) value = hn::Add(value, Read<whole()>(dx + k, count));
        Write<whole()>(value, dx + k, count);
      });
    }
  }
}

// A table of one type's kernels: run-time selection needs names without angle brackets.
template <typename T>
constexpr Kernels<T> kKernels = {Forward<T>, Backward<T>};
const Kernels<float>& KernelsOfFloat() {
  return kKernels<float>;
}
const Kernels<float16>& KernelsOfHalf() {
  return kKernels<float16>;
}
const Kernels<bfloat16>& KernelsOfBfloat16() {
  return kKernels<bfloat16>;
}

}  // namespace HWY_NAMESPACE
}  // namespace mxtrain::group_norm
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include <memory>

#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/group_norm/group_norm.h"
#include "mxtrain/operators/instance_norm/instance_norm.h"

namespace mxtrain::group_norm {
HWY_EXPORT(KernelsOfFloat);
HWY_EXPORT(KernelsOfHalf);
HWY_EXPORT(KernelsOfBfloat16);

namespace {

template <typename T>
const Kernels<T>& KernelsOf() {
  if constexpr (std::is_same_v<T, float>) return HWY_DYNAMIC_DISPATCH(KernelsOfFloat)();
  if constexpr (std::is_same_v<T, float16>) return HWY_DYNAMIC_DISPATCH(KernelsOfHalf)();
  if constexpr (std::is_same_v<T, bfloat16>) return HWY_DYNAMIC_DISPATCH(KernelsOfBfloat16)();
}

enum Argument { kData, kGamma, kBeta };
enum Output { kOutput, kMean, kDeviation };

template <typename T>
class GroupNormSimd final : public Operator {
 public:
  GroupNormSimd(const GroupView& view, double eps) : view_(view), eps_(eps) {}

  void Forward(const ForwardArgs& args) override {
    const auto wanted = [&](Output output) -> T* {
      const auto i = static_cast<size_t>(output);
      const bool wants = i < args.req.size() && args.req[i] != OpReqType::kNullOp;
      return wants ? args.out_data[i].dptr<T>() : nullptr;
    };
    ForwardGroups<T> groups;
    groups.view = view_;
    groups.eps = eps_;
    groups.x = args.in_data[kData].dptr<T>();
    groups.gamma = args.in_data[kGamma].dptr<T>();
    groups.beta = args.in_data[kBeta].dptr<T>();
    groups.y = wanted(kOutput);
    groups.mean = wanted(kMean);
    groups.deviation = wanted(kDeviation);
    if (!args.ctx.saved.empty()) groups.saved = args.ctx.saved[0].dptr<Saved>();
    ParallelFor(view_.rows, Grain(),
                [&](int64_t begin, int64_t end) { kernels_.forward(groups, begin, end); });
  }

  void Backward(const BackwardArgs& args) override {
    BackwardGroups<T> groups;
    groups.view = view_;
    groups.head = args.out_grad[kOutput].dptr<T>();
    groups.x = args.in_data[kData].dptr<T>();
    groups.gamma = args.in_data[kGamma].dptr<T>();
    groups.saved = args.ctx.saved[0].dptr<Saved>();
    groups.sums = args.ctx.workspace.dptr<PieceSums>();
    if (args.req[kData] != OpReqType::kNullOp) groups.dx = args.in_grad[kData].dptr<T>();
    groups.add = args.req[kData] == OpReqType::kAddTo;
    ParallelFor(view_.rows, Grain(),
                [&](int64_t begin, int64_t end) { kernels_.backward(groups, begin, end); });
    AddSamples(groups.sums, args, kGamma, &PieceSums::product);
    AddSamples(groups.sums, args, kBeta, &PieceSums::head);
  }

 private:
  int64_t Grain() const { return std::max<int64_t>(1, kParallelGrain / view_.length()); }

  // The gradient of gamma or beta: the sums of the pieces, [N, scales], over the samples.
  void AddSamples(const PieceSums* sums, const BackwardArgs& args, Argument argument,
                  double PieceSums::*part) const {
    const OpReqType req = args.req[argument];
    if (req == OpReqType::kNullOp) return;
    const int64_t scales = view_.scales();
    T* to = args.in_grad[argument].dptr<T>();
    for (int64_t scale = 0; scale < scales; ++scale) {
      double total = 0;
      for (int64_t i = scale; i < view_.rows * view_.pieces; i += scales) total += sums[i].*part;
      Assign(req, to, scale, total);
    }
  }

  const GroupView view_;
  const double eps_;
  const Kernels<T>& kernels_ = KernelsOf<T>();
};

// The shorter a piece is, the less its vectors hold.
constexpr int64_t kLeastPiece = 8;

template <typename Param>
int64_t GroupsOf(const Param& param, const TShape& data) {
  if constexpr (std::is_same_v<Param, GroupNormParam>) return param.num_groups;
  return data[1];
}

template <typename Param>
Expected<Plan, Refusal> PlanSimd(const OperatorProperty& base, const PlanRequest& request,
                                 Backend&) {
  const auto& property = static_cast<const PropertyWithParam<Param>&>(base);
  const TensorSpec& data = request.in[kData];
  const DType type = data.type;
  if (!IsFloating(type) || type == DType::kFloat64) return Refusal{"float32 and 16-bit types only"};
  if (request.in[kGamma].type != type || request.in[kBeta].type != type)
    return Refusal{"gamma and beta of another type"};
  if (data.shape.Size() == 0) return Refusal{"empty array"};
  const auto adds = [](OpReqType req) { return req == OpReqType::kAddTo; };
  if (std::any_of(request.out_req.begin(), request.out_req.end(), adds))
    return Refusal{"kAddTo of an output is not supported"};
  if (request.needs_backward && property.NumVisibleOutputs() > 1)
    return Refusal{"gradients of mean and std are not supported"};

  GroupView view;
  view.groups = GroupsOf(property.param(), data.shape);
  if (request.in[kGamma].shape != request.in[kBeta].shape)
    return Refusal{"gamma and beta of different lengths"};
  view.rows = data.shape[0] * view.groups;
  view.pieces = request.in[kGamma].shape[0] / view.groups;
  view.piece = data.shape.Size() / (view.rows * view.pieces);
  if (view.pieces > 1 && view.piece < kLeastPiece)
    return Refusal{format("channels of fewer than {} elements", kLeastPiece)};

  Plan plan = PlainPlan(base, request);
  const auto outputs = static_cast<size_t>(property.NumOutputs());
  plan.backward_reads =
      BackwardReads{std::vector<bool>(outputs), {true, true, false}, std::vector<bool>(outputs)};
  plan.backward_reads->out_grad[kOutput] = true;
  if (request.needs_backward) {
    plan.saved = {view.rows * static_cast<int64_t>(sizeof(Saved))};
    plan.backward_workspace = view.rows * view.pieces * static_cast<int64_t>(sizeof(PieceSums));
  }
  plan.make = [view, eps = property.param().eps, type]() -> std::unique_ptr<Operator> {
    if (type == DType::kFloat32) return std::make_unique<GroupNormSimd<float>>(view, eps);
    if (type == DType::kFloat16) return std::make_unique<GroupNormSimd<float16>>(view, eps);
    return std::make_unique<GroupNormSimd<bfloat16>>(view, eps);
  };
  return plan;
}

}  // namespace
}  // namespace mxtrain::group_norm

MXTRAIN_OPERATOR(group_norm_simd_cpu, registry) {
  using namespace mxtrain;
  registry.AddKernel(
      {"GroupNorm", DeviceType::kCPU, "simd", 100, group_norm::PlanSimd<GroupNormParam>});
  registry.AddKernel(
      {"InstanceNorm", DeviceType::kCPU, "simd", 100, group_norm::PlanSimd<InstanceNormParam>});
}
#endif  // HWY_ONCE
