// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/sample_multinomial/sample_multinomial.h"

#include "mxtrain/operator/registry.h"

namespace mxtrain {
namespace {

// Classes that are numbers of the type, from 0 on without a gap.
int64_t MostClasses(DType type) {
  switch (type) {
    case DType::kUint8:
      return int64_t{1} << 8;
    case DType::kBfloat16:
      return (int64_t{1} << 8) + 1;
    case DType::kFloat16:
      return (int64_t{1} << 11) + 1;
    case DType::kFloat32:
      return (int64_t{1} << 24) + 1;
    case DType::kInt32:
      return int64_t{1} << 31;
    default:
      return int64_t{1} << 53;
  }
}

}  // namespace

bool SampleMultinomialProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                           std::vector<TShape>*) const {
  const TShape& data = (*in)[0];
  if (!data.has_rank()) return false;
  if (data.ndim() == 0 || data[data.ndim() - 1] == 0) {
    Throw(ErrorKind::kConfig, "{}: data {} must be rows of probabilities, [..., K]", TypeString(),
          data.ToString());
  }
  if (const int64_t classes = data[data.ndim() - 1]; classes > MostClasses(param_.dtype)) {
    Throw(ErrorKind::kConfig, "{}: dtype = {} cannot hold {} classes; use {}", TypeString(),
          NameOf(param_.dtype), classes, classes > MostClasses(DType::kInt32) ? "int64" : "int32");
  }
  std::vector<int64_t> sizes(data.begin(), data.end() - 1);
  sizes.insert(sizes.end(), param_.shape.begin(), param_.shape.end());
  if (sizes.empty()) sizes.push_back(1);
  const TShape expected{std::span<const int64_t>(sizes)};
  const std::vector<std::string> names = ListOutputs();
  for (size_t i = 0; i < out->size(); ++i) UnifyShape(expected, &(*out)[i], TypeString(), names[i]);
  return data.known();
}

bool SampleMultinomialProperty::InferType(std::vector<DType>* in, std::vector<DType>* out,
                                          std::vector<DType>*) const {
  UnifyType(param_.dtype, &(*out)[kClass], TypeString(), ListOutputs()[kClass]);
  DType& data = (*in)[0];
  if (param_.get_prob) {
    if (data == DType::kUnknown) data = (*out)[kLogProbability];
    if (data != DType::kUnknown)
      UnifyType(data, &(*out)[kLogProbability], TypeString(), ListOutputs()[kLogProbability]);
  }
  return data != DType::kUnknown;
}

std::vector<int> SampleMultinomialProperty::DeclareBackwardDependency(
    const std::vector<int>& out_grad, const std::vector<int>& in_data,
    const std::vector<int>& out_data) const {
  if (!param_.get_prob) return out_grad;  // not a loss
  return {out_grad[kLogProbability], in_data[0], out_data[kClass]};
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(sample_multinomial, registry) {
  registry.AddProperty("_sample_multinomial", {"sample_multinomial"},
                       [] { return std::make_unique<mxtrain::SampleMultinomialProperty>(); });
}
