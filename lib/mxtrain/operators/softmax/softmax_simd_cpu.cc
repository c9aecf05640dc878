// SPDX-License-Identifier: Apache-2.0
// The softmax family on float32 and bfloat16 by vectors. Lengths only along the last axis.
#include <algorithm>

#include "mxtrain/base/math.h"
#include "mxtrain/operators/softmax/softmax_kernels.h"
#include "mxtrain/operators/softmax/softmax_loops.h"

namespace mxtrain::softmax {
namespace {

constexpr int64_t kColumnsAtOnce = 64;
constexpr int64_t kGrain = kParallelGrain / 8;  // elements; an exponential costs several additions

template <typename T>
class SoftmaxSimd final : public Operator {
 public:
  SoftmaxSimd(const Form& form, const SoftmaxView& view) : form_(form), view_(view) {}

  void Forward(const ForwardArgs& args) override {
    if (args.req[0] == OpReqType::kNullOp) return;
    const T* x = args.in_data[0].dptr<T>();
    T* y = args.out_data[0].dptr<T>();
    ForRowGroups(
        args.in_data,
        [&](int64_t at, int64_t rows, int64_t count) {
          kernels_.forward_rows(form_, x + at, y + at, rows, view_.classes, count);
        },
        [&](int64_t at, int64_t begin, int64_t end) {
          kernels_.forward_columns(form_, x + at, y + at, view_.classes, view_.inner, begin, end);
        });
  }

  void Backward(const BackwardArgs& args) override {
    if (args.req[0] == OpReqType::kNullOp) return;
    const bool add = args.req[0] == OpReqType::kAddTo;
    const T *head = args.out_grad[0].dptr<T>(), *y = args.out_data[0].dptr<T>();
    T* dx = args.in_grad[0].dptr<T>();
    ForRowGroups(
        args.in_data,
        [&](int64_t at, int64_t rows, int64_t count) {
          kernels_.backward_rows(form_, head + at, y + at, dx + at, add, rows, view_.classes,
                                 count);
        },
        [&](int64_t at, int64_t begin, int64_t end) {
          kernels_.backward_columns(form_, head + at, y + at, dx + at, add, view_.classes,
                                    view_.inner, begin, end);
        });
  }

 private:
  // Along the last axis, rows(offset, number of rows, elements that count); else
  // columns(offset of a matrix, first column, end).
  template <typename F, typename G>
  void ForRowGroups(std::span<const TBlob> in_data, const F& rows, const G& columns) const {
    if (view_.inner > 1) {
      const int64_t groups = CeilDivide(view_.inner, kColumnsAtOnce);
      const int64_t grain = std::max<int64_t>(1, kGrain / (kColumnsAtOnce * view_.classes));
      ParallelFor(view_.outer * groups, grain, [&](int64_t begin, int64_t end) {
        for (int64_t task = begin; task < end; ++task) {
          const int64_t first = task % groups * kColumnsAtOnce;
          columns(task / groups * view_.classes * view_.inner, first,
                  std::min(view_.inner, first + kColumnsAtOnce));
        }
      });
      return;
    }
    const Lengths lengths = LengthsOf(view_, in_data);
    const int64_t grain = std::max<int64_t>(1, kGrain / view_.classes);
    ParallelFor(view_.outer, grain, [&](int64_t begin, int64_t end) {
      if (!lengths.lengths.data) return rows(begin * view_.classes, end - begin, view_.classes);
      for (int64_t row = begin; row < end; ++row) rows(row * view_.classes, 1, lengths(row));
    });
  }

  const Form form_;
  const SoftmaxView view_;
  const Kernels<T>& kernels_ = KernelsOf<T>();
};

Expected<Plan, Refusal> PlanSimd(const OperatorProperty& base, const PlanRequest& request,
                                 Backend&) {
  const auto& property = static_cast<const SoftmaxProperty&>(base);
  const TensorSpec &data = request.in[SoftmaxProperty::kData], &output = request.out[0];
  if (data.type != DType::kFloat32 && data.type != DType::kBfloat16)
    return Refusal{"float32 and bfloat16 only"};
  if (output.type != data.type) return Refusal{"the output must have the type of the data"};
  if (data.shape.Size() == 0) return Refusal{"empty array"};
  if (request.out_req[0] == OpReqType::kAddTo)
    return Refusal{"kAddTo of the output is not supported"};
  const SoftmaxView view = property.View(data.shape);
  if (property.param().use_length && view.inner > 1)
    return Refusal{"lengths along the last axis only"};
  Plan plan = PlainPlan(property, request);
  plan.cost += 0.5 * static_cast<double>(data.shape.Size());
  const Form form{property.log(), static_cast<float>(property.scale())};
  plan.make = [form, view, narrow = data.type == DType::kBfloat16]() -> std::unique_ptr<Operator> {
    if (narrow) return std::make_unique<SoftmaxSimd<bfloat16>>(form, view);
    return std::make_unique<SoftmaxSimd<float>>(form, view);
  };
  return plan;
}

}  // namespace
}  // namespace mxtrain::softmax

MXTRAIN_OPERATOR(softmax_simd_cpu, registry) {
  for (const char* name : {"softmax", "log_softmax", "softmin"}) {
    registry.AddKernel({name, mxtrain::DeviceType::kCPU, "simd", 100, mxtrain::softmax::PlanSimd});
  }
}
