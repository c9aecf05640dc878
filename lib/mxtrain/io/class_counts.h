#pragma once
// How often each class stands in a source.
#include <cstdint>
#include <string_view>
#include <vector>

#include "mxtrain/io/source.h"

namespace mxtrain::io {

// Examples of each of `classes` classes: by the source's own classes or, for records of numbers alone that name none, by the label field
// `label` (or the only one). Throws kConfig where neither says what an example's class is, and kData for a label that is no class number.
MXTRAIN_API std::vector<int64_t> CountClasses(const Source& source, std::string_view label, int64_t classes);

}  // namespace mxtrain::io
