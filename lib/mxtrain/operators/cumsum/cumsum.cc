// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/cumsum/cumsum.h"

namespace mxtrain::cumsum {
namespace {

TShape Shape(const TShape& src, const EnvArguments& env) {
  const auto& param = env.As<CumsumParam>();
  if (param.dtype) {
    Throw(ErrorKind::kConfig,
          "cumsum: dtype is not supported; the result has the type of the data, use Cast before");
  }
  if (!param.axis) return {src.Size()};
  CheckAxis(*param.axis, src, "cumsum");
  return src;
}

}  // namespace
}  // namespace mxtrain::cumsum

MXTRAIN_OPERATOR(cumsum, registry) {
  using namespace mxtrain;
  SimpleOp(registry, "cumsum")
      .add_alias("_np_cumsum")
      .set_kwargs_struct<cumsum::CumsumParam>()
      .set_shape_function(cumsum::Shape)
      .describe("sums of the elements up to each, along an axis");
}
