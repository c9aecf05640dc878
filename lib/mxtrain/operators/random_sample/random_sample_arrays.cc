// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/random_sample/random_sample_arrays.h"

#include "mxtrain/operator/registry.h"

namespace mxtrain::random_sample {

bool SampleArraysProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                      std::vector<TShape>*) const {
  TShape each;
  for (size_t i = 0; i < in->size(); ++i) UnifyShape((*in)[i], &each, name_, arguments_[i]);
  const TShape& own = param_.shape;
  const TShape& result = (*out)[0];
  if (!each.has_rank() && result.has_rank()) {
    if (result.ndim() < own.ndim()) {
      Throw(ErrorKind::kConfig, "{}: the output {} has fewer axes than shape = {}", name_,
            result.ToString(), own.ToTuple());
    }
    each = TShape(std::span(result.begin(), static_cast<size_t>(result.ndim() - own.ndim())));
  }
  if (!each.has_rank()) return false;
  std::vector<int64_t> sizes(each.begin(), each.end());
  sizes.insert(sizes.end(), own.begin(), own.end());
  TShape expected{std::span<const int64_t>(sizes)};
  UnifyShape((*out)[0], &expected, name_, "output");
  (*out)[0] = expected;
  for (int i = 0; i < each.ndim(); ++i) each[i] = expected[i];
  for (TShape& shape : *in) shape = each;
  return expected.known();
}

bool SampleArraysProperty::InferType(std::vector<DType>* in, std::vector<DType>* out,
                                     std::vector<DType>*) const {
  DType type = DType::kUnknown;
  for (size_t i = 0; i < in->size(); ++i) {
    if ((*in)[i] == DType::kUnknown) continue;
    if (type == DType::kUnknown) type = (*in)[i];
    UnifyType(type, &(*in)[i], name_, arguments_[i]);
  }
  if (type == DType::kUnknown) type = (*out)[0];
  if (type == DType::kUnknown) return false;
  for (DType& argument : *in) argument = type;
  DType& result = (*out)[0];
  UnifyType(param_.dtype.value_or(result == DType::kUnknown ? DType::kFloat32 : result), &result,
            name_, "output");
  return true;
}

MXTRAIN_OPERATOR(random_sample_arrays, registry) {
  ForEachArraySample(
      [&registry](const char* name, const std::vector<std::string>& arguments, auto) {
        registry.AddProperty(name, {name + 1}, [name, arguments] {
          return std::make_unique<SampleArraysProperty>(name, arguments);
        });
      });
}

}  // namespace mxtrain::random_sample
