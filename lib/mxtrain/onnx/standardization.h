// SPDX-License-Identifier: Apache-2.0
#pragma once
// The standardization of a table as operators of ONNX: a model then takes the numbers of the table
// and gives them.
#include <map>
#include <string>

#include "mxtrain/base/standardization.h"
#include "mxtrain/onnx/model.h"

namespace mxtrain::onnx {

// Puts (transform(x) - mean) / std behind each of the inputs and the inverse before each of the
// outputs that are named: mean + std * y, and of columns of kLog its exponential. Numbers are of
// float32; between, they are doubles, as the source of tables computes. With `fills_missing` an
// input that is not a number counts as the mean. Throws kConfig for a name
// that the model lacks, an input of another type, shapes without the numbers of an example, and
// quantiles of an output.
MXTRAIN_API void AddStandardization(const std::map<std::string, Standardization>& inputs,
                                    const std::map<std::string, Standardization>& outputs,
                                    bool fills_missing, Model* model);

}  // namespace mxtrain::onnx
