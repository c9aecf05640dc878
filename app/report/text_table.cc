// SPDX-License-Identifier: Apache-2.0
#include "app/report/text_table.h"

#include <algorithm>

#include "mxtrain/base/format.h"

namespace mxtrain::report {
namespace {

constexpr size_t kFewRows = 4;
constexpr size_t kGap = 2;

}  // namespace

void TextTable::Add(std::vector<std::string> cells) {
  rows_.push_back(std::move(cells));
}

size_t TextTable::WidthOf(size_t column) const {
  size_t width = std::max(columns_[column].least_width, columns_[column].head.size());
  for (const auto& row : rows_) width = std::max(width, row[column].size());
  return width;
}

// The cells from `first` on. A last column on the left is not filled up.
std::string TextTable::Row(const std::vector<std::string>& cells, size_t first) const {
  std::string line;
  for (size_t i = first; i < cells.size(); ++i) {
    if (i > first) line.append(kGap, ' ');
    if (i > 0 && !columns_[i].left) {
      line += format("{:>{}}", cells[i], WidthOf(i));
    } else {
      line += i + 1 < cells.size() ? format("{:<{}}", cells[i], WidthOf(i)) : cells[i];
    }
  }
  return line + "\n";
}

// A line for each cell.
std::string TextTable::Listed() const {
  size_t head_width = 0, width = 0;  // of cells on the right
  for (size_t i = 1; i < columns_.size(); ++i) {
    head_width = std::max(head_width, columns_[i].head.size());
    for (const auto& row : rows_) width = std::max(width, columns_[i].left ? 0 : row[i].size());
  }
  std::string lines;
  for (const auto& row : rows_) {
    lines += columns_[0].head + " " + row[0] + "\n";
    for (size_t i = 1; i < row.size(); ++i)
      lines += format("  {:<{}}  {:>{}}\n", columns_[i].head, head_width, row[i],
                      columns_[i].left ? 0 : width);
  }
  return lines;
}

std::string TextTable::Lines(size_t width) const {
  std::vector<std::string> heads;
  size_t whole = 0;
  for (size_t i = 0; i < columns_.size(); ++i) {
    heads.push_back(columns_[i].head);
    whole += WidthOf(i) + (i > 0 ? kGap : 0);
  }
  const bool fits = whole <= width;
  if (!fits && rows_.size() <= kFewRows) return Listed();
  std::string lines = fits ? Row(heads, 0) : heads[0] + "\n  " + Row(heads, 1);
  for (const auto& row : rows_) lines += fits ? Row(row, 0) : row[0] + "\n  " + Row(row, 1);
  return lines;
}

}  // namespace mxtrain::report
