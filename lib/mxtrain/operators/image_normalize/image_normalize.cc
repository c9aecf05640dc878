// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/image_normalize/image_normalize.h"

#include "mxtrain/operator/param_of.h"
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
  if (!IsFloating(param_.dtype) || param_.dtype == DType::kFloat64)
    Throw(ErrorKind::kConfig, "{}: dtype is {}; use float32, float16 or bfloat16", kName,
          NameOf(param_.dtype));
  UnifyType(param_.dtype, &(*out)[0], kName, "output");
  return true;
}

namespace {

// Of the operators before it, dtype is float32.
std::optional<Kwargs> NarrowParams(std::span<const OperatorProperty* const> chain) {
  const std::string dtype = ParamOf(*chain[1], "dtype");
  if (dtype != NameOf(DType::kFloat16) && dtype != NameOf(DType::kBfloat16)) return std::nullopt;
  Kwargs kwargs = chain[0]->GetParams();
  std::erase_if(kwargs, [](const auto& param) { return param.first == "dtype"; });
  kwargs.emplace_back("dtype", dtype);
  return kwargs;
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(image_normalize, registry) {
  registry.AddProperty("image_normalize", {},
                       [] { return std::make_unique<mxtrain::ImageNormalizeProperty>(); });
  // In mixed precision: one kernel writes what convolutions read.
  mxtrain::FusePattern narrow;
  narrow.name = "image_normalize+Cast";
  narrow.chain = {"image_normalize", "Cast"};
  narrow.into = "image_normalize";
  narrow.params = mxtrain::NarrowParams;
  registry.AddPattern(narrow);
}
