// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/mxnet_kernel.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "mxtrain/operator/mxnet_operator.h"
#include "tests/support/operator_case.h"

namespace mxtrain::mxnet {

// MXNet's example of a SimpleOp: s = scalar^2, f(x) = s x^2 / 2 where |x| < 1 / s, |x| - 1 / (2 s)
// elsewhere.
namespace mshadow_op {
struct smooth_l1_loss {
  template <typename A>
  static A Map(A a, A b) {
    if (a > 1 / b) return a - A(0.5) / b;
    if (a < -1 / b) return -a - A(0.5) / b;
    return A(0.5) * a * a * b;
  }
};
struct smooth_l1_gradient {
  template <typename A>
  static A Map(A a, A b) {
    if (a > 1 / b) return 1;
    if (a < -1 / b) return -1;
    return b * a;
  }
};
}  // namespace mshadow_op

template <typename xpu>
void SmoothL1Forward_(const TBlob& src, const EnvArguments& env, TBlob* ret, OpReqType req,
                      RunContext ctx) {
  MXTRAIN_ASSERT(get_stream<xpu>(ctx) == nullptr);
  MXTRAIN_REAL_TYPE_SWITCH(ret->type, Real, {
    using A = AccumulatorOf<Real>;
    const A sigma2 = static_cast<A>(env.scalar * env.scalar);
    const Real* in = src.dptr<Real>();
    Assign(FlatTo1D<Real>(*ret), req,
           [=](int64_t i) { return mshadow_op::smooth_l1_loss::Map(A(in[i]), sigma2); });
  });
}

template <typename xpu>
void SmoothL1BackwardUseIn_(const OutputGrad& out_grad, const Input0& in_data0,
                            const EnvArguments& env, TBlob* in_grad, OpReqType req, RunContext) {
  MXTRAIN_REAL_TYPE_SWITCH(in_grad->type, Real, {
    using A = AccumulatorOf<Real>;
    const A sigma2 = static_cast<A>(env.scalar * env.scalar);
    const Real *src = in_data0.data.dptr<Real>(), *ograd = out_grad.data.dptr<Real>();
    Assign(FlatTo1D<Real>(*in_grad), req, [=](int64_t i) {
      return A(ograd[i]) * mshadow_op::smooth_l1_gradient::Map(A(src[i]), sigma2);
    });
  });
}

}  // namespace mxtrain::mxnet

#define XPU cpu
MXTRAIN_OPERATOR(mxnet_kernel_test, registry) {
  using namespace mxtrain::mxnet;
  MXTRAIN_REGISTER_SIMPLE_OP(smooth_l1, XPU)
      .set_function(XPU::kDevMask, SmoothL1Forward_<XPU>, mxtrain::kNoInplace)
      .set_gradient(XPU::kDevMask, SmoothL1BackwardUseIn_<XPU>, mxtrain::kInplaceOutIn)
      .set_enable_scalar(true)
      .describe("Calculate Smooth L1 Loss(lhs, scalar)")
      .native()
      .set_types({mxtrain::DType::kFloat32, mxtrain::DType::kFloat64, mxtrain::DType::kFloat16,
                  mxtrain::DType::kBfloat16});
}
#undef XPU

namespace mxtrain::mxnet {
namespace {

using test::Arrays;
using test::Values;

TEST_CASE("MXNet's smooth_l1 fragment is a SimpleOp") {
  OperatorRegistry registry;
  mxtrain_register_mxnet_kernel_test(registry);
  CHECK(registry.Create("smooth_l1", {})->Description() == "Calculate Smooth L1 Loss(lhs, scalar)");
  for (const TShape& shape : {TShape{3, 7}, TShape{0, 2}}) {
    test::OperatorCase c;
    c.name = "smooth_l1 " + shape.ToString();
    c.op = "smooth_l1";
    c.kwargs = {{"scalar", "2"}};
    c.shapes = {shape};
    c.inputs = {test::UniformAwayFrom(-1, 1, {-0.25, 0.25})};
    c.forward = [](const Arrays& in, const Arrays&) {
      return Arrays{test::Apply(
          in[0], [](double x) { return std::abs(x) < 0.25 ? 2 * x * x : std::abs(x) - 0.125; })};
    };
    c.types = test::kAllFloatingTypes;
    c.tolerance = {16, "three operations"};
    const test::CaseReport report = test::ExamineCase(c, registry, test::TestBackend());
    for (const std::string& problem : report.problems) FAIL_CHECK(problem);
    CHECK(report.trials > 0);
  }
}

TEST_CASE("Assign writes a function of the index, a range, or a number") {
  std::vector<float> out{1, 2, 3};
  const std::span<float> all(out);
  Assign(all, kWriteTo, [](int64_t i) { return 10.0 * static_cast<double>(i); });
  CHECK(out == std::vector<float>{0, 10, 20});
  Assign(all, kWriteInplace, std::vector<double>{4, 5, 6});
  CHECK(out == std::vector<float>{4, 5, 6});
  const float part[] = {7, 8};
  Assign(all.subspan(1), kWriteTo, std::span(part));
  CHECK(out == std::vector<float>{4, 7, 8});
  Assign(all.first(2), kWriteTo, 1);
  CHECK(out == std::vector<float>{1, 1, 8});
  Assign(all.first(0), kWriteTo, std::vector<float>{});
  CHECK(out == std::vector<float>{1, 1, 8});
}

TEST_CASE("Assign honours the request") {
  std::vector<float> out{1, 2, 3};
  const std::span<float> all(out);
  Assign(all, kNullOp, 9.5);
  CHECK(out == std::vector<float>{1, 2, 3});
  Assign(all, kAddTo, 0.5);
  Assign(all, kAddTo, [](int64_t i) { return static_cast<float>(i); });
  Assign(all, kAddTo, std::vector<float>{10, 20, 30});
  CHECK(out == std::vector<float>{11.5f, 23.5f, 35.5f});
}

TEST_CASE("Assign converts to the type of its elements") {
  std::vector<float16> half(2, 1.0f);
  Assign(std::span(half), kAddTo, 0.25);
  CHECK(static_cast<float>(half[1]) == 1.25f);
  std::vector<uint8_t> bytes{250, 1};
  Assign(std::span(bytes), kAddTo, 3);
  CHECK(bytes == std::vector<uint8_t>{253, 4});
}

TEST_CASE("Assign runs over more elements than one thread takes") {
  const int64_t n = 3 * kParallelGrain + 5;
  std::vector<double> out(static_cast<size_t>(n));
  Assign(std::span(out), kWriteTo, [](int64_t i) { return static_cast<double>(i); });
  std::vector<double> expected(out.size());
  std::iota(expected.begin(), expected.end(), 0.0);
  CHECK(out == expected);
}

TEST_CASE("a range of another length, and elements of another type, are bugs") {
  std::vector<float> out{1, 2};
  CHECK_THROWS_AS(Assign(std::span(out), kWriteTo, std::vector<float>{1}), Error);
  const mxtrain::TBlob blob{out.data(), {2}, DType::kFloat32, Layout(), Context::cpu()};
  CHECK(FlatTo1D<float>(blob).size() == 2);
  CHECK_THROWS_AS(FlatTo1D<double>(blob), Error);
}

// Bytes of an element, by the switch over all types.
int64_t BytesOf(DType type) {
  int64_t bytes = 0;
  MXTRAIN_TYPE_SWITCH(type, Type, bytes = static_cast<int64_t>(sizeof(Type)););
  return bytes;
}
int64_t BytesOfReal(DType type) {
  int64_t bytes = 0;
  MXTRAIN_REAL_TYPE_SWITCH(type, Real, { bytes = static_cast<int64_t>(sizeof(Real)); });
  return bytes;
}

TEST_CASE("switches over types take the types that they name") {
  for (const DType type : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBfloat16,
                           DType::kUint8, DType::kInt32, DType::kInt64}) {
    CHECK(BytesOf(type) == SizeOf(type));
    if (IsFloating(type)) CHECK(BytesOfReal(type) == SizeOf(type));
  }
  CHECK_THROWS_WITH_AS(BytesOfReal(DType::kInt32),
                       "BytesOfReal takes float32, float64, float16 or bfloat16, not int32", Error);
}

}  // namespace
}  // namespace mxtrain::mxnet
