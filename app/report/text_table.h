// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tables for people.
#include <cstddef>
#include <string>
#include <vector>

namespace mxtrain::report {

// Columns two blanks apart, each as wide as its widest cell; the first is aligned to the left.
class TextTable {
 public:
  struct Column {
    std::string head;
    size_t least_width = 0;
    bool left = false;
  };
  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void Add(std::vector<std::string> cells);  // as many as columns

  // Lines of at most `width` characters as far as that can be done: of a wider table the first cell
  // of each row is on a line of its own; of few rows every other cell, too, behind its head.
  std::string Lines(size_t width) const;

 private:
  std::string Row(const std::vector<std::string>& cells, size_t first) const;
  std::string Listed() const;
  size_t WidthOf(size_t column) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace mxtrain::report
