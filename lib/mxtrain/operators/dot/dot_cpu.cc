#include <algorithm>

#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operator/registry.h"
#include "mxtrain/operators/dot/dot.h"

namespace mxtrain::dot {
namespace {

constexpr int64_t kBlock = 64;  // columns that are summed at one time

// sums[j] += a b[j * stride].
template <typename T>
[[gnu::always_inline]] inline void AddRow(double a, const T* b, int64_t stride, int64_t n, double* sums) {
  if (stride == 1) {
    for (int64_t j = 0; j < n; ++j) sums[j] += a * static_cast<double>(b[j]);
  } else {
    for (int64_t j = 0; j < n; ++j) sums[j] += a * static_cast<double>(b[j * stride]);
  }
}
MXTRAIN_SIMD void AddRows(const float* a, const MatrixView& va, const float* b, const MatrixView& vb, int64_t n, double* sums) {
  for (int64_t k = 0; k < va.columns; ++k) AddRow(a[k * va.column_stride], b + k * vb.row_stride, vb.column_stride, n, sums);
}
template <typename T>
void AddRows(const T* a, const MatrixView& va, const T* b, const MatrixView& vb, int64_t n, double* sums) {
  for (int64_t k = 0; k < va.columns; ++k) {
    AddRow(static_cast<double>(a[k * va.column_stride]), b + k * vb.row_stride, vb.column_stride, n, sums);
  }
}

// c (plain or transposed, as its view says) = a b, or += a b. Sums in double.
template <typename T>
void Multiply(const T* a, const MatrixView& va, const T* b, const MatrixView& vb, T* c, const MatrixView& vc, OpReqType req) {
  const int64_t blocks = (vc.columns + kBlock - 1) / kBlock;
  const int64_t grain = std::max<int64_t>(1, kParallelGrain / std::max<int64_t>(1, va.columns * kBlock));
  SwitchReq(req, [&](auto) {
    ParallelFor(vc.rows * blocks, grain, [&](int64_t begin, int64_t end) {
      for (int64_t index = begin; index < end; ++index) {
        const int64_t row = index / blocks, first = index % blocks * kBlock, n = std::min(kBlock, vc.columns - first);
        double sums[kBlock] = {};
        AddRows(a + row * va.row_stride, va, b + first * vb.column_stride, vb, n, sums);
        T* out = c + row * vc.row_stride + first * vc.column_stride;
        for (int64_t j = 0; j < n; ++j) Assign(req, out, j * vc.column_stride, static_cast<ComputeOf<T>>(sums[j]));
      }
    });
  });
}

class Dot final : public Operator {
 public:
  Dot(const MatrixView& a, const MatrixView& b) : a_(a), b_(b), c_{a.rows, b.columns, b.columns, 1} {}

  void Forward(const OpContext&, std::span<const TBlob> in, std::span<const OpReqType> req, std::span<const TBlob> out,
               std::span<const TBlob>) override {
    Product(in[0], a_, in[1], b_, out[0], c_, req[0]);
  }
  // dA = dC B', dB = A' dC.
  void Backward(const OpContext&, std::span<const TBlob> head, std::span<const TBlob> in, std::span<const TBlob>,
                std::span<const OpReqType> req, std::span<const TBlob> grad, std::span<const TBlob>) override {
    Product(head[0], c_, in[1], b_.Transposed(), grad[0], a_, req[0]);
    Product(in[0], a_.Transposed(), head[0], c_, grad[1], b_, req[1]);
  }

 private:
  static void Product(const TBlob& a, const MatrixView& va, const TBlob& b, const MatrixView& vb, const TBlob& c, const MatrixView& vc,
                      OpReqType req) {
    SwitchFloating(a.type, "dot", [&](auto tag) {
      using T = typename decltype(tag)::type;
      Multiply<T>(a.dptr<T>(), va, b.dptr<T>(), vb, c.dptr<T>(), vc, req);
    });
  }
  MatrixView a_, b_, c_;
};

Expected<Plan, Refusal> MakePlan(const OperatorProperty& property, const PlanRequest& request, Backend&) {
  if (!IsFloating(request.in[0].type)) return Refusal{format("no function for {}", NameOf(request.in[0].type))};
  const DotParam& param = static_cast<const DotProperty&>(property).param();
  Plan plan;
  plan.in.resize(2);
  plan.out.resize(1);
  const MatrixView a = LeftView(request.in[0].shape, param.transpose_a), b = RightView(request.in[1].shape, param.transpose_b);
  constexpr double kNanosecondsPerProduct = 0.5;
  plan.cost = kNanosecondsPerProduct * static_cast<double>(a.rows) * static_cast<double>(a.columns) * static_cast<double>(b.columns);
  plan.make = [a, b]() -> std::unique_ptr<Operator> { return std::make_unique<Dot>(a, b); };
  return plan;
}

}  // namespace

MXTRAIN_OPERATOR(dot_cpu, registry) {
  registry.AddRow({"dot", DeviceType::kCPU, "ref", kRefRank, MakePlan});
}

}  // namespace mxtrain::dot
