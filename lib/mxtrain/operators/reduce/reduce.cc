// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/reduce/reduce.h"

#include <array>

#include "mxtrain/operator/axes.h"
#include "mxtrain/operator/simple_op.h"

namespace mxtrain::reduce {
namespace {

std::array<bool, TShape::kMaxDims> ReducedAxes(const TShape& shape, const ReduceParam& param,
                                               const char* who) {
  std::array<bool, TShape::kMaxDims> reduced{};
  if (!param.axis || param.axis->ndim() < 1) {
    reduced.fill(true);
    return reduced;
  }
  for (const int64_t given : *param.axis) {
    const auto axis = static_cast<size_t>(CheckAxis(given, shape, who));
    if (reduced[axis]) Throw(ErrorKind::kConfig, "{}: axis {} is repeated", who, given);
    reduced[axis] = true;
  }
  if (!param.exclude) return reduced;
  for (bool& r : reduced) r = !r;
  return reduced;
}

}  // namespace

Groups MakeGroups(const TShape& shape, const ReduceParam& param, const char* who) {
  const auto reduced = ReducedAxes(shape, param, who);
  Groups groups;
  for (int i = 0; i < shape.ndim(); ++i) {
    Groups::Space& space = reduced[static_cast<size_t>(i)] ? groups.reduced : groups.kept;
    space.Add(shape[i], shape.Product(i + 1, shape.ndim()));
  }
  return groups;
}

TShape ReducedShape(const TShape& shape, const ReduceParam& param, const char* who) {
  const auto reduced = ReducedAxes(shape, param, who);
  std::vector<int64_t> dims;
  for (int i = 0; i < shape.ndim(); ++i) {
    if (!reduced[static_cast<size_t>(i)]) dims.push_back(shape[i]);
    if (reduced[static_cast<size_t>(i)] && param.keepdims) dims.push_back(1);
  }
  if (dims.empty()) dims.push_back(1);
  return TShape(dims);
}

MXTRAIN_OPERATOR(reduce, registry) {
  const std::pair<const char*, const char*> texts[] = {
      {"sum", "the sum over axes"},
      {"mean", "the mean over axes"},
      {"prod", "the product over axes"},
      {"nansum", "the sum over axes, NaN counted as 0"},
      {"nanprod", "the product over axes, NaN counted as 1"},
      {"max", "the largest element over axes"},
      {"min", "the smallest element over axes"},
  };
  for (const auto& [name, text] : texts)
    SimpleOp(registry, name).set_kwargs_struct<ReduceParam>().describe(text);
  for (const char* name : {"sum", "max", "min"})
    SimpleOp(registry, name).add_alias(std::string(name) + "_axis");
}

}  // namespace mxtrain::reduce
