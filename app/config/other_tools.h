// SPDX-License-Identifier: Apache-2.0
#pragma once
// Names of operators, parameters, commands and more in Caffe, Darknet, Keras, PyTorch and ONNX:
// only for suggestions, they are not accepted. Other names of configuration keys are in
// schema_table.cc.
#include <span>
#include <string>

#include "mxtrain/base/params.h"

namespace mxtrain::config {

// "FullyConnected" for "Dense", "Activation: {act_type: relu}" for "ReLU"; "" for none. `value` is
// what a configuration gives the layer, "" for nothing: with "4", "Upsample" is "UpSampling:
// {scale: 4, ...}".
std::string OperatorOfOtherTools(const std::string& name, const std::string& value = "");
// A hint for operators of other tools without an equivalent here, which prevents misleading
// suggestions: "not supported yet, ...";
// "" for others.
std::string MissingOperator(const std::string& name);
// The layer for an activation that `Activation` does not have: "LeakyReLU: {act_type: gelu}" for
// "gelu"; "" for none.
std::string ActivationOfOtherTools(const std::string& name);
// A hint for a word without a direct equivalent, wherever it occurs: "callbacks",
// "label_smoothing"; "" for none.
std::string AdviceForOtherTools(const std::string& name);
// The corresponding command: "train" for "fit"; "" for none.
std::string CommandOfOtherTools(const std::string& name);
// The corresponding parameter: "num_filter" for "filters"; "" for none.
std::string ParamOfOtherTools(const std::string& name, std::span<const FieldInfo> params);

}  // namespace mxtrain::config
