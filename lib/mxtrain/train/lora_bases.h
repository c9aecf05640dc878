// SPDX-License-Identifier: Apache-2.0
#pragma once
// The files beside a checkpoint that a model is read from.
#include <string>
#include <vector>

#include "mxtrain/base/macros.h"

namespace mxtrain {

// Of a checkpoint that holds factors (train/lora.h): the file of weights that is its base, and so
// on if that is such a checkpoint, too. Empty for others. Throws kFileSystem if one is gone, kData
// if it is damaged.
MXTRAIN_API std::vector<std::string> BaseFilesOf(const std::string& checkpoint);

}  // namespace mxtrain
