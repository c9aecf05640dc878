// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/list_line.h"

#include <algorithm>
#include <climits>

#include "mxtrain/base/error.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/internal/text_columns.h"

namespace mxtrain::io {
namespace {

// "17<tab>3.000000<tab>cats/a.jpg": MXNet's order.
bool IsNumberedLine(const std::vector<std::string_view>& cells) {
  float ignored = 0;
  return cells.size() >= 3 &&
         std::all_of(cells.begin(), cells.end() - 1,
                     [&](std::string_view c) { return ParseNumber(c, &ignored); }) &&
         !ParseNumber(cells.back(), &ignored);
}

}  // namespace

char ListSeparator(std::string_view line) {
  for (const char separator : {'\t', ','}) {
    if (line.find(separator) != std::string_view::npos) return separator;
  }
  return ' ';
}

std::vector<std::string_view> SplitListLine(std::string_view line, size_t wanted) {
  const char separator = ListSeparator(line);
  std::vector<std::string_view> cells = SplitCells(line, separator);
  if (separator != ' ' && cells.size() == wanted && !cells[0].empty() &&
      std::ranges::count(cells, std::string_view()) > 0)
    return cells;
  std::erase(cells, std::string_view());
  if (separator == '\t' && IsNumberedLine(cells)) {
    std::rotate(cells.begin(), cells.end() - 1, cells.end());
    cells.erase(cells.begin() + 1);
  }
  return cells;
}

void CheckPath(std::string_view path, const std::function<std::string()>& place) {
  if (path.size() < PATH_MAX) return;
  Throw(ErrorKind::kData, "{}: expected the path of an image, got {} bytes: '{}'", place(),
        path.size(), Shortened(path));
}

}  // namespace mxtrain::io
