// SPDX-License-Identifier: Apache-2.0
#pragma once
// Some of the examples of a source.
#include <cstdint>
#include <memory>
#include <vector>

#include "mxtrain/io/source.h"

namespace mxtrain::io {

// The examples with these indices, in this order; classes, fields and warnings are the source's.
MXTRAIN_API std::unique_ptr<Source> NewSubset(std::shared_ptr<const Source> source,
                                              std::vector<int64_t> indices);

}  // namespace mxtrain::io
