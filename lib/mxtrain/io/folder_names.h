// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the name of a folder among images says of it.
#include <string_view>

#include "mxtrain/base/macros.h"

namespace mxtrain::io {

enum class Split { kNone, kTrain, kVal, kTest };

// The part of a data set that a folder with this name holds: train, Training, seg_train, train2017,
// TrainingSet; val, valid, Validation, dev; test, Testing. In any case; kNone for any other name.
MXTRAIN_API Split SplitOf(std::string_view folder);

// Whether file servers and operating systems make folders of this name, with thumbnails or deleted
// files in them: @eaDir, #recycle, __MACOSX. Hidden ones (leading dot) are not among them.
MXTRAIN_API bool IsSystemFolder(std::string_view folder);

}  // namespace mxtrain::io
