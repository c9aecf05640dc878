// SPDX-License-Identifier: Apache-2.0
// SimpleOps as MXNet's architecture guide writes them: its smooth L1 loss with tensor expressions,
// and functions that take space and random numbers from their environment.
#include "mxtrain/operator/mxnet_simple_op.h"

#include <doctest/doctest.h>

#include <cmath>

#include "mxtrain/operator/imperative.h"
#include "mxtrain/operator/mxnet_names.h"
#include "tests/package/plugin_mxnet/mx_guide_smooth_l1/smooth_l1_unary-inl.h"
#include "tests/support/operator_case.h"

namespace mxtrain::mxnet {
namespace op {

namespace mshadow_op {
struct distance {
  template <typename V>
  MSHADOW_XINLINE static V Map(V p, V q) {
    return p > q ? p - q : q - p;
  }
};
struct sign {
  template <typename V>
  MSHADOW_XINLINE static V Map(V v) {
    return static_cast<V>(v > 0 ? 1 : v < 0 ? -1 : 0);
  }
};
}  // namespace mshadow_op

void RegisterSmoothL1(OperatorRegistry& registry) {
  MXNET_REGISTER_SIMPLE_OP(smooth_l1, XPU)
      .set_shape_function(SmoothL1Shape_)
      .set_function(XPU::kDevMask, SmoothL1Forward_<XPU>, kNoInplace)
      .set_gradient(XPU::kDevMask, SmoothL1BackwardUseIn_<XPU>, kInplaceOutIn)
      .set_enable_scalar(true)
      .describe("Calculate Smooth L1 Loss(lhs, scalar)");
}

// y = x + noise, by way of temporary space; its gradient is twice the head gradient, of which space
// keeps a copy.
template <typename xpu>
void NoiseForward(const TBlob& src, const EnvArguments& env, TBlob* ret, OpReqType req,
                  RunContext ctx) {
  mshadow::Stream<xpu>* s = ctx.get_stream<xpu>();
  auto rand_res = env.resource[0].get_random(s);
  auto tmp_space_res = env.resources[1].get_space(src.shape_, s);
  mshadow::Tensor<xpu, 2> noise = tmp_space_res.template FlatTo2D<xpu, real_t>(s);
  rand_res.SampleUniform(&noise, 0, 1);
  MSHADOW_REAL_TYPE_SWITCH(ret->type_flag_, DType, {
    mshadow::Tensor<xpu, 2, DType> in = src.FlatTo2D<xpu, DType>(s),
                                   out = ret->FlatTo2D<xpu, DType>(s);
    ASSIGN_DISPATCH(out, req, in + noise);
  });
}
template <typename xpu>
void NoiseBackward(const OutputGrad& out_grad, const EnvArguments& env, TBlob* in_grad,
                   OpReqType req, RunContext ctx) {
  mshadow::Stream<xpu>* s = ctx.get_stream<xpu>();
  MSHADOW_REAL_TYPE_SWITCH(in_grad->type_flag_, DType, {
    mshadow::Tensor<xpu, 2, DType> head = out_grad.data.FlatTo2D<xpu, DType>(s);
    mshadow::Tensor<xpu, 2> twice = env.resource[1].template get_space<xpu>(head.shape_, s);
    twice = head * 2.0f;
    mshadow::Tensor<xpu, 2, DType> grad = in_grad->FlatTo2D<xpu, DType>(s);
    ASSIGN_DISPATCH(grad, req, twice);
  });
}

// |lhs - rhs| of two arrays: functions of binary operators.
template <typename xpu>
void DistanceForward(const TBlob& lhs, const TBlob& rhs, const EnvArguments& env, TBlob* ret,
                     OpReqType req, RunContext ctx) {
  MXTRAIN_ASSERT(env.kwargs.size() == 1 && env.kwargs[0].first == "norm");
  mshadow::Stream<xpu>* s = ctx.get_stream<xpu>();
  MSHADOW_REAL_TYPE_SWITCH(ret->type_flag_, DType, {
    const auto a = lhs.FlatTo2D<xpu, DType>(s), b = rhs.FlatTo2D<xpu, DType>(s),
               out = ret->FlatTo2D<xpu, DType>(s);
    ASSIGN_DISPATCH(out, req, mshadow::expr::F<mshadow_op::distance>(a, b));
  });
}
template <typename xpu>
void DistanceBackward(const OutputGrad& out_grad, const Input0& lhs, const Input1& rhs,
                      const EnvArguments&, TBlob* lhs_grad, TBlob* rhs_grad, OpReqType req_lhs,
                      OpReqType req_rhs, RunContext ctx) {
  mshadow::Stream<xpu>* s = ctx.get_stream<xpu>();
  using mshadow_op::sign;
  MSHADOW_REAL_TYPE_SWITCH(out_grad.data.type_flag_, DType, {
    const auto head = out_grad.data.FlatTo2D<xpu, DType>(s), a = lhs.data.FlatTo2D<xpu, DType>(s),
               b = rhs.data.FlatTo2D<xpu, DType>(s);
    // The head gradient may be where that of lhs is written, so it comes last. An array that nobody
    // asked for has no elements.
    if (req_rhs != kNullOp) {
      const auto db = rhs_grad->FlatTo2D<xpu, DType>(s);
      ASSIGN_DISPATCH(db, req_rhs, head * mshadow::expr::F<sign>(b - a));
    }
    if (req_lhs != kNullOp) {
      const auto da = lhs_grad->FlatTo2D<xpu, DType>(s);
      ASSIGN_DISPATCH(da, req_lhs, head * mshadow::expr::F<sign>(a - b));
    }
  });
}
TShape DistanceShape(const TShape& lhs, const TShape& rhs, const EnvArguments&) {
  if (lhs != rhs) Throw(ErrorKind::kConfig, "distance: two shapes");
  return lhs;
}

}  // namespace op

namespace {

using test::Arrays;
using test::Values;

// Without the allocations that this form makes.
std::string ProblemsOf(const test::CaseReport& report) {
  std::string problems;
  for (const std::string& problem : report.problems) {
    if (!problem.ends_with("heap allocations")) problems += problem + "\n";
  }
  return problems;
}

TEST_CASE("the guide's smooth L1 loss computes as written, in every type and request") {
  OperatorRegistry registry;
  op::RegisterSmoothL1(registry);
  test::OperatorCase c;
  c.name = c.op = "smooth_l1";
  c.kwargs = {{"scalar", "1.5"}};
  c.shapes = {{4, 6}};
  c.inputs = {test::Uniform(-2, 2)};
  c.forward = [](const Arrays& in, const Arrays&) {
    Values y(in[0].size());
    for (size_t i = 0; i < y.size(); ++i) {
      const double x = std::abs(in[0][i]), sigma2 = 2.25;
      y[i] = x > 1 / sigma2 ? x - 0.5 / sigma2 : 0.5 * x * x * sigma2;
    }
    return Arrays{y};
  };
  c.types = {DType::kFloat32, DType::kFloat16};
  c.tolerance = {16, "a handful of operations in float32"};
  const test::CaseReport report = test::ExamineCase(c, registry, test::TestBackend());
  CHECK(ProblemsOf(report) == "");
  CHECK(report.trials > 10);
}

void CheckNoise(const std::function<void(SimpleOp&)>& request) {
  auto registry = std::make_shared<OperatorRegistry>();
  SimpleOp noise(*registry, "noise");
  noise.set_function(cpu::kDevMask, op::NoiseForward<cpu>, kNoInplace)
      .set_gradient(cpu::kDevMask, op::NoiseBackward<cpu>, kInplaceOutIn);
  request(noise);
  Runtime runtime({}, registry);
  const NDArray x = NDArray::FromVector(runtime, {5}, {1, 2, 3, 4, 5});
  const std::vector<float> y = Invoke("noise", {&x, 1})[0].ToVector();
  for (size_t i = 0; i < 5; ++i) {
    const float noise_at = y[i] - static_cast<float>(i + 1);
    CHECK(noise_at >= -1e-6F);
    CHECK(noise_at <= 1 + 1e-6F);
    if (i > 0) CHECK(noise_at != y[i - 1] - static_cast<float>(i));
  }
}

TEST_CASE("the environment of a SimpleOp has space and random numbers") {
  CheckNoise([](SimpleOp& noise) {
    noise.set_resource_request(ResourceRequest(ResourceRequest::kRandom))
        .set_resource_request(ResourceRequest(ResourceRequest::kTempSpace, 20));
  });
  CheckNoise([](SimpleOp& noise) {
    const std::vector<ResourceRequest> requests = {ResourceRequest::kRandom,
                                                   ResourceRequest::kTempSpace};
    noise.set_resource_request(requests);
  });
}

TEST_CASE("the gradient of a SimpleOp has the same resources") {
  OperatorRegistry registry;
  SimpleOp(registry, "noise")
      .set_function(cpu::kDevMask, op::NoiseForward<cpu>, kNoInplace)
      .set_gradient(cpu::kDevMask, op::NoiseBackward<cpu>, kInplaceOutIn)
      .set_resource_request({ResourceRequest::kRandom, ResourceRequest::kTempSpace})
      .native()
      .set_types({DType::kFloat32});
  test::OperatorCase c;
  c.name = c.op = "noise";
  c.shapes = {{7}};
  c.inputs = {test::Uniform(0, 1)};
  c.types = {DType::kFloat32};
  c.check = [](const test::CaseResult& result) {
    std::vector<std::string> problems;
    for (size_t i = 0; i < result.out[0].size(); ++i) {
      if (!result.in_grad.empty() && std::abs(result.in_grad[0][i] - 2 * result.head[0][i]) > 1e-6)
        problems.push_back("the gradient is not twice the head gradient");
    }
    return problems;
  };
  const test::CaseReport report = test::ExamineCase(c, registry, test::TestBackend());
  CHECK(ProblemsOf(report) == "");
  CHECK(report.trials > 0);
}

TEST_CASE("a binary SimpleOp with keyword arguments") {
  OperatorRegistry registry;
  SimpleOp(registry, "distance")
      .set_shape_function(op::DistanceShape)
      .set_function(cpu::kDevMask, op::DistanceForward<cpu>, kInplaceLhsOut)
      .set_gradient(cpu::kDevMask, op::DistanceBackward<cpu>, kInplaceOutLhs)
      .set_enable_kwargs(true)
      .native()
      .set_types({DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBfloat16});
  test::OperatorCase c;
  c.name = c.op = "distance";
  c.kwargs = {{"norm", "1"}};
  c.shapes = {{9}, {9}};
  c.inputs = {test::Uniform(-2, 2)};
  c.forward = [](const Arrays& in, const Arrays&) {
    Values y(in[0].size());
    for (size_t i = 0; i < y.size(); ++i) y[i] = std::abs(in[0][i] - in[1][i]);
    return Arrays{y};
  };
  c.types = {DType::kFloat32};
  c.tolerance = {4, "one operation"};
  const test::CaseReport report = test::ExamineCase(c, registry, test::TestBackend());
  CHECK(ProblemsOf(report) == "");
  CHECK(report.trials > 0);
}

}  // namespace
}  // namespace mxtrain::mxnet
