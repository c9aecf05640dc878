// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/expand_dims/expand_dims.h"

#include <algorithm>
#include <vector>

#include "mxtrain/operator/axes.h"

namespace mxtrain::expand_dims {
namespace {

TShape Expanded(const TShape& src, const EnvArguments& env) {
  std::vector<int64_t> dims(src.begin(), src.end());
  dims.push_back(1);
  const int axis = CheckAxis(env.As<ExpandDimsParam>().axis, TShape(dims), "expand_dims");
  std::rotate(dims.begin() + axis, dims.end() - 1, dims.end());
  return TShape(dims);
}

TShape Squeezed(const TShape& src, const EnvArguments& env) {
  const auto& given = env.As<SqueezeParam>().axis;
  std::vector<bool> dropped(static_cast<size_t>(src.ndim()));
  for (int i = 0; i < src.ndim() && !given; ++i) dropped[static_cast<size_t>(i)] = src[i] == 1;
  for (int i = 0; given && i < given->ndim(); ++i) {
    const int axis = CheckAxis((*given)[i], src, "squeeze");
    if (src[axis] != 1)
      Throw(ErrorKind::kConfig, "squeeze: axis {} of shape {} does not have length 1", (*given)[i],
            src.ToString());
    dropped[static_cast<size_t>(axis)] = true;
  }
  std::vector<int64_t> dims;
  for (int i = 0; i < src.ndim(); ++i) {
    if (!dropped[static_cast<size_t>(i)]) dims.push_back(src[i]);
  }
  if (dims.empty()) dims.push_back(1);
  return TShape(dims);
}

}  // namespace

MXTRAIN_OPERATOR(expand_dims, registry) {
  SimpleOp(registry, "expand_dims")
      .set_kwargs_struct<ExpandDimsParam>()
      .set_shape_function(Expanded)
      .set_identity({{0, 0}}, {{0, 0}})
      .describe("inserts an axis of length one");
  SimpleOp(registry, "squeeze")
      .set_kwargs_struct<SqueezeParam>()
      .set_shape_function(Squeezed)
      .set_identity({{0, 0}}, {{0, 0}})
      .describe("removes axes of length one");
}

}  // namespace mxtrain::expand_dims
