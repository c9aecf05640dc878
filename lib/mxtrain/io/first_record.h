// SPDX-License-Identifier: Apache-2.0
#pragma once
// The first record of a table, to tell tables from other text.
#include <string>
#include <vector>

#include "mxtrain/base/macros.h"

namespace mxtrain::io {

// The cells of the first non-empty record of `text`, read as the source csv does; the text may be
// cut anywhere after it. Empty if it is none: a quote that is not closed.
MXTRAIN_API std::vector<std::string> FirstRecord(std::string text, const std::string& delimiter);

}  // namespace mxtrain::io
