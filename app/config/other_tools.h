#pragma once
// What Caffe, Darknet, Keras, PyTorch and ONNX call operators, their parameters, commands and the rest: for suggestions alone, nothing is taken
// under these names. What they call keys stands in the table of keys (schema_table.cc).
#include <span>
#include <string>

#include "mxtrain/base/params.h"

namespace mxtrain::config {

// "FullyConnected" for "Dense", "Activation: {act_type: relu}" for "ReLU"; "" for none.
std::string OperatorOfOtherTools(const std::string& name);
// What there is to say of an operator that other tools have and that there is none of here, so that no near word misleads: "there is no
// operator of that kind yet"; "" for others.
std::string MissingOperator(const std::string& name);
// The layer that is meant by the name of an activation that `Activation` does not have: "LeakyReLU: {act_type: gelu}" for "gelu"; "" for none.
std::string ActivationOfOtherTools(const std::string& name);
// A sentence on a word that stands for no one word here, wherever it was written: "callbacks", "label_smoothing"; "" for none.
std::string AdviceForOtherTools(const std::string& name);
// The command that is meant: "train" for "fit"; "" for none.
std::string CommandOfOtherTools(const std::string& name);
// The one of the parameters that is meant: "num_filter" for "filters"; "" for none.
std::string ParamOfOtherTools(const std::string& name, std::span<const FieldInfo> params);

}  // namespace mxtrain::config
