// SPDX-License-Identifier: Apache-2.0
#pragma once
// The standardization of a table as operators of ONNX: a model then takes the numbers of the table
// and gives them.
#include <map>
#include <string>

#include "mxtrain/base/standardization.h"
#include "mxtrain/onnx/model.h"

namespace mxtrain::onnx {

// Puts (x - mean) / std behind each of the inputs and mean + std * y before each of the outputs
// that are named. Numbers are of float32; between, they are doubles, as the source of tables
// computes. Throws kConfig for a name that the model lacks, an input of another type, and shapes
// without the numbers of an example.
MXTRAIN_API void AddStandardization(const std::map<std::string, Standardization>& inputs,
                                    const std::map<std::string, Standardization>& outputs,
                                    Model* model);

}  // namespace mxtrain::onnx
