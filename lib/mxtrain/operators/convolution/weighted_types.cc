// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/convolution/weighted_types.h"

namespace mxtrain::weighted {

bool InferTypes(const OperatorProperty& property, bool has_bias, std::vector<DType>* in,
                std::vector<DType>* out) {
  constexpr size_t kBias = 2;
  const auto narrow = [](DType type) {
    return type == DType::kBfloat16 || type == DType::kFloat16;
  };
  const bool wide_bias = has_bias && (*in)[kBias] == DType::kFloat32 &&
                         (narrow((*in)[0]) || narrow((*in)[1]) || narrow((*out)[0]));
  std::vector<DType> alike = *in, none;
  if (wide_bias) alike.erase(alike.begin() + kBias);
  const bool known = property.OperatorProperty::InferType(&alike, out, &none);
  if (wide_bias) alike.insert(alike.begin() + kBias, DType::kFloat32);
  *in = alike;
  return known;
}

}  // namespace mxtrain::weighted
