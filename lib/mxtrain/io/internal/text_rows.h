// SPDX-License-Identifier: Apache-2.0
#pragma once
// Texts and their labels in a file, one of each in a row. Private to io.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mxtrain::io {

struct TextColumns {
  std::vector<std::string> texts;  // at least one; joined by blanks
  std::string label;               // "": labels are not read
  std::string label_delim;         // joins the labels of a JSON array
  std::string delimiter;           // as DelimiterOf takes it
};

struct TextRows {
  std::vector<std::string> texts, labels;  // labels: empty if they are not read
  std::vector<int64_t> lines;              // of each row, from 1
  std::string note;                        // what the first line is taken for; "" for nothing
  void Add(std::string text, int64_t line) {
    texts.push_back(std::move(text));
    lines.push_back(line);
  }
};

// By the end of the name, behind which .gz may stand: JSON lines (.jsonl, .ndjson), or a table
// (.tsv, .csv, .tab, with labels .txt). Without labels, .txt holds a text in each line. Other names
// are judged by the beginning: JSON lines if that is an object; without labels, lines if the first
// one does not name the columns. Throws what NewLabelledTextSource does.
TextRows ReadTextRows(const std::string& path, const TextColumns& columns);

// Of JSON lines, of which `first_line` is the number of the first.
TextRows ReadJsonRows(const std::string& path, std::string_view lines, int64_t first_line,
                      const TextColumns& columns);

}  // namespace mxtrain::io
