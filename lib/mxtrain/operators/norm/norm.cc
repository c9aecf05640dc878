// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/norm/norm.h"

#include "mxtrain/operators/norm/norm_loops.h"

namespace mxtrain::norm {
namespace {

TShape Shape(const TShape& src, const EnvArguments& env) {
  const auto& param = env.As<NormParam>();
  if (param.out_dtype)
    Throw(ErrorKind::kConfig,
          "norm: out_dtype is not supported; the result has the type of the data");
  return reduce::ReducedShape(src, param.Axes(), "norm");
}
int64_t Scratch(const std::vector<TShape>& in, const EnvArguments& env) {
  return reduce::ScratchBytes<Euclidean>(
      in[0], reduce::FlagsOf(in[0], env.As<NormParam>().Axes(), "norm"));
}

}  // namespace

MXTRAIN_OPERATOR(norm, registry) {
  SimpleOp(registry, "norm")
      .set_kwargs_struct<NormParam>()
      .set_shape_function(Shape)
      .set_types(kFloatingTypes)
      .set_resource_request(ResourceRequest::kTempSpace, Scratch)
      .describe("the norm of order 1 or 2 over axes");
}

}  // namespace mxtrain::norm
