#pragma once
// What Caffe, Darknet, Keras, PyTorch and ONNX call operators and their parameters: for suggestions alone, nothing is taken under these names.
#include <span>
#include <string>

#include "mxtrain/base/params.h"

namespace mxtrain::config {

// "FullyConnected" for "Dense", "Activation: {act_type: relu}" for "ReLU"; "" for none.
std::string OperatorOfOtherTools(const std::string& name);
// The one of the parameters that is meant: "num_filter" for "filters"; "" for none.
std::string ParamOfOtherTools(const std::string& name, std::span<const FieldInfo> params);

}  // namespace mxtrain::config
