#include "mxtrain/operators/convolution/weighted_types.h"

#include <algorithm>

namespace mxtrain::weighted {

bool InferTypes(const OperatorProperty& property, std::vector<DType>* in, std::vector<DType>* out) {
  constexpr size_t kBias = 2;
  const auto narrow = [](DType type) { return type == DType::kBfloat16 || type == DType::kFloat16; };
  const bool wide_bias =
      in->size() > kBias && (*in)[kBias] == DType::kFloat32 && (narrow((*in)[0]) || narrow((*in)[1]) || narrow((*out)[0]));
  std::vector<DType> alike(in->begin(), in->begin() + static_cast<int64_t>(wide_bias ? kBias : in->size())), none;
  const bool known = property.OperatorProperty::InferType(&alike, out, &none);
  std::copy(alike.begin(), alike.end(), in->begin());
  return known;
}

}  // namespace mxtrain::weighted
