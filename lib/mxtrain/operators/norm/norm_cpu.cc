// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/norm/norm.h"

namespace mxtrain::norm {
namespace {

TShape Shape(const TShape& src, const EnvArguments& env) {
  const auto& param = env.As<NormParam>();
  if (param.out_dtype)
    Throw(ErrorKind::kConfig,
          "norm: out_dtype is not supported; the result has the type of the data");
  return reduce::ReducedShape(src, param.Axes(), "norm");
}

}  // namespace

MXTRAIN_OPERATOR(norm_cpu, registry) {
  SimpleOp(registry, "norm")
      .set_function(DeviceType::kCPU, Forward<OnCpu>, kNoInplace)
      .set_gradient(DeviceType::kCPU, Backward<OnCpu>, kNoInplace)
      .set_kwargs_struct<NormParam>()
      .set_shape_function(Shape)
      .set_types(kFloatingTypes)
      .describe("the norm of order 1 or 2 over axes");
}

}  // namespace mxtrain::norm
