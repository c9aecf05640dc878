// SPDX-License-Identifier: Apache-2.0
#pragma once
// Class frequencies of a source.
#include <cstdint>
#include <string_view>
#include <vector>

#include "mxtrain/io/source.h"

namespace mxtrain::io {

// Number of examples of each of `classes` classes: by the source's own classes or, for
// records without classes, by the label field `label` (or the only one). Throws kConfig if neither
// determines the class, and kData for a label that is not a class number.
MXTRAIN_API std::vector<int64_t> CountClasses(const Source& source, std::string_view label,
                                              int64_t classes);

}  // namespace mxtrain::io
