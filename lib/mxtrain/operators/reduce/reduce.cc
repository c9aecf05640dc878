// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/reduce/reduce.h"

#include "mxtrain/operator/axes.h"
#include "mxtrain/operators/reduce/reduce_loops.h"

namespace mxtrain::reduce {

AxisFlags FlagsOf(const TShape& shape, const ReduceParam& param, const char* who) {
  AxisFlags reduced{};
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

TShape ReducedShape(const TShape& shape, const ReduceParam& param, const char* who) {
  const AxisFlags reduced = FlagsOf(shape, param, who);
  if (param.keepdims) return KeptShape(shape, reduced);
  std::vector<int64_t> dims;
  for (int i = 0; i < shape.ndim(); ++i) {
    if (!reduced[static_cast<size_t>(i)]) dims.push_back(shape[i]);
  }
  if (dims.empty()) dims.push_back(1);
  return TShape(dims);
}

TShape KeptShape(const TShape& shape, const AxisFlags& reduced) {
  TShape kept = shape;
  for (int i = 0; i < shape.ndim(); ++i) {
    if (reduced[static_cast<size_t>(i)]) kept[i] = 1;
  }
  return kept;
}

namespace {

template <typename F>
TShape Shape(const TShape& src, const EnvArguments& env) {
  return ReducedShape(src, env.As<ReduceParam>(), F::kName);
}
template <typename F>
int64_t Scratch(const std::vector<TShape>& in, const EnvArguments& env) {
  return ScratchBytes<F>(in[0], FlagsOf(in[0], env.As<ReduceParam>(), F::kName));
}

}  // namespace

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
  for (const auto& [name, text] : texts) SimpleOp(registry, name).describe(text);
  ForEachReduction([&registry](auto f) {
    using F = decltype(f);
    SimpleOp(registry, F::kName)
        .set_kwargs_struct<ReduceParam>()
        .set_shape_function(Shape<F>)
        .set_types(kFloatingTypes)
        .set_resource_request(ResourceRequest::kTempSpace, Scratch<F>);
  });
  for (const char* name : {"sum", "max", "min"})
    SimpleOp(registry, name).add_alias(std::string(name) + "_axis");
}

}  // namespace mxtrain::reduce
