// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/image_normalize/image_normalize.h"

#include "mxtrain/operator/registry.h"

namespace mxtrain {
namespace {

constexpr const char* kName = "image_normalize";

}  // namespace

bool ImageNormalizeProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                        std::vector<TShape>*) const {
  TShape &data = (*in)[0], &output = (*out)[0];
  if (data.has_rank() && data.ndim() != 4)
    Throw(ErrorKind::kConfig, "{}: data must be [N, H, W, C], not {}", kName, data.ToString());
  if (data.has_rank()) UnifyShape({data[0], data[3], data[1], data[2]}, &output, kName, "output");
  if (!output.has_rank()) return false;
  if (output.ndim() != 4)
    Throw(ErrorKind::kConfig, "{}: the output must be [N, C, H, W], not {}", kName,
          output.ToString());
  UnifyShape({output[0], output[2], output[3], output[1]}, &data, kName, "data");
  if (!data.known()) return false;
  if (data[3] < 1 || data[3] > PixelLevels::kMostChannels) {
    Throw(ErrorKind::kConfig,
          "{}: expected images with 1 to {} channels on the last axis, but data are {}", kName,
          PixelLevels::kMostChannels, data.ToString());
  }
  LevelsOf(param_, static_cast<int>(data[3]), kName);
  return true;
}

bool ImageNormalizeProperty::InferType(std::vector<DType>* in, std::vector<DType>* out,
                                       std::vector<DType>*) const {
  UnifyType(DType::kUint8, &(*in)[0], kName, "data");
  UnifyType(DType::kFloat32, &(*out)[0], kName, "output");
  return true;
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(image_normalize, registry) {
  registry.AddProperty("image_normalize", {},
                       [] { return std::make_unique<mxtrain::ImageNormalizeProperty>(); });
}
