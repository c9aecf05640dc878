#pragma once
// Types of layers with data, a weight and perhaps a bias.
#include <vector>

#include "mxtrain/operator/property.h"

namespace mxtrain::weighted {

// InferType of Convolution and FullyConnected: one type for all, but a bias beside narrow data may be float32.
bool InferTypes(const OperatorProperty& property, bool has_bias, std::vector<DType>* in, std::vector<DType>* out);

// Element i of a bias, or 0 without one (data == nullptr), as a T or as what T is summed in.
template <typename T, typename A>
A BiasAt(const TBlob& bias, int64_t i) {
  if (!bias.data) return 0;
  return bias.type == DTypeOf<T>::value ? A(bias.dptr<T>()[i]) : A(bias.dptr<float>()[i]);
}

}  // namespace mxtrain::weighted
