// SPDX-License-Identifier: Apache-2.0
#pragma once
// Lines of a text file that lists images: a path, followed by any number of labels. Columns are
// separated by tabs, else by commas, else by spaces (a path with spaces requires tabs or commas);
// empty ones do not count. MXNet's lines (number, labels, path, separated by tabs) are also read.
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/base/macros.h"

namespace mxtrain::io {

// The separator of a line's columns.
MXTRAIN_API char ListSeparator(std::string_view line);
// The path and the labels of a trimmed line; views into it. Empty for a line of separators. A line
// that has just `wanted` columns with the empty ones between tabs or commas has those too.
MXTRAIN_API std::vector<std::string_view> SplitListLine(std::string_view line, size_t wanted = 0);

// Throws kData if no file can have this name, as for text that is not a list. `place` names the
// line.
MXTRAIN_API void CheckPath(std::string_view path, const std::function<std::string()>& place);

}  // namespace mxtrain::io
