// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/labelled_objects.h"

namespace mxtrain {

bool InferLabelledTypes(const std::vector<std::string>& names, const std::string& who,
                        std::vector<DType>* in, std::vector<DType>* out) {
  DType data = (*out)[0];
  for (size_t i = 0; i + 1 < in->size() && data == DType::kUnknown; ++i) data = (*in)[i];
  if (data == DType::kUnknown) return false;
  for (size_t i = 0; i + 1 < in->size(); ++i) UnifyType(data, &(*in)[i], who, names[i]);
  UnifyType(data, &(*out)[0], who, "output");
  UnifyType(data == DType::kFloat64 ? data : DType::kFloat32, &in->back(), who, names.back());
  return true;
}

}  // namespace mxtrain
