// SPDX-License-Identifier: Apache-2.0
#pragma once
// Examples by the paths of their files: names that stay when the data moves or grows.
#include <string>

#include "mxtrain/base/params.h"
#include "mxtrain/io/source.h"

namespace mxtrain::io {

// The folder that the files of a source lie in, from its parameters: `root`, else `path` if that is
// a folder, else the folder of the file `path`.
MXTRAIN_API std::string RootOf(const Kwargs& params);

// The path of an example's file below `root`; the whole path if it lies elsewhere, "" if the
// example has no file of its own.
MXTRAIN_API std::string FileBelow(const Source& source, int64_t index, const std::string& root);

}  // namespace mxtrain::io
