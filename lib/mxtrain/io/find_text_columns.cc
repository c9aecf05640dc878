// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/find_text_columns.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string_view>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/read_json.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/internal/plain_text.h"
#include "mxtrain/io/internal/table_text.h"
#include "mxtrain/io/internal/text_columns.h"

namespace mxtrain::io {
namespace {

constexpr size_t kRowsLooked = 1000, kLeastRows = 4, kMostTableBytes = size_t{16} << 30;
constexpr std::string_view kLabelNames[] = {"label",  "class",     "category", "target",
                                            "intent", "sentiment", "topic",    "labels"};

// The first rows, column by column.
struct Columns {
  std::vector<std::string> names;  // of JSON, the keys of the first object
  std::vector<std::vector<std::string>> cells;
  bool damaged = false;
  size_t rows() const { return cells.empty() ? 0 : cells[0].size(); }
};

std::string PlainEnding(const std::string& path) {
  std::filesystem::path name(Lower(path));
  if (name.extension() == ".gz") name.replace_extension();
  return name.extension().string();
}

// What does not look as its name says has no rows from there on.
Columns TableColumns(const std::string& path, std::string text, bool tabs) {
  Columns columns;
  try {
    TableText(path, std::move(text), tabs ? "tab" : "auto")
        .ForEachRecord([&](const std::vector<std::string_view>& cells, int64_t) {
          if (columns.cells.empty()) columns.cells.resize(cells.size());
          if (columns.rows() == kRowsLooked) return;
          if (cells.size() != columns.cells.size())
            Throw(ErrorKind::kData, "{}: rows of different lengths", path);
          for (size_t c = 0; c < cells.size(); ++c) columns.cells[c].emplace_back(cells[c]);
        });
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kData) throw;
    columns.damaged = true;
  }
  return columns;
}

Columns JsonColumns(std::string_view text) {
  Columns columns;
  ForEachLine(text, [&columns](std::string_view line, int64_t) {
    if (columns.rows() == kRowsLooked) return;
    const Expected<FileJson, Refusal> read = ReadJson<FileJson>(line);
    if (!read || !read->is_object()) return;
    const FileJson& json = *read;
    if (columns.names.empty()) {
      for (const auto& [key, value] : json.items()) columns.names.push_back(key);
      columns.cells.resize(columns.names.size());
    }
    for (size_t c = 0; c < columns.names.size(); ++c) {
      const auto found = json.find(columns.names[c]);
      const bool there = found != json.end();
      columns.cells[c].push_back(!there               ? ""
                                 : found->is_string() ? found->get<std::string>()
                                                      : found->dump());
    }
  });
  return columns;
}

bool NamesLabel(const std::string& name) {
  return std::ranges::find(kLabelNames, Lower(name)) != std::end(kLabelNames);
}

// The parts of a cell, without blanks around them.
std::vector<std::string> PartsOf(std::string_view cell, char delim) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= cell.size();) {
    const size_t end = std::min(cell.find(delim, begin), cell.size());
    parts.emplace_back(Trim(cell.substr(begin, end - begin), " \t\r\n"));
    begin = end + 1;
  }
  return parts;
}

// The classes of lists in JSON; nothing if the cells are none.
std::optional<std::set<std::string>> ClassesOfLists(const std::vector<std::string>& cells) {
  std::set<std::string> classes;
  bool lists = false;
  for (const std::string& cell : cells) {
    const FileJson json = FileJson::parse(cell, nullptr, /*allow_exceptions=*/false);
    if (!json.is_array()) continue;
    lists = true;
    for (const FileJson& item : json)
      classes.insert(item.is_string() ? item.get<std::string>() : item.dump());
  }
  return lists ? std::optional(std::move(classes)) : std::nullopt;
}

// What separates the classes of labels that are sets of them; "" if they are none.
std::string LabelDelimiter(const std::vector<std::string>& cells, size_t first, bool json) {
  constexpr std::string_view kDelimiters = ";|,";
  if (json) {
    const auto classes = ClassesOfLists(cells);
    for (const char delim : kDelimiters) {
      const auto holds = [delim](const std::string& name) {
        return name.find(delim) != std::string::npos;
      };
      if (classes && std::ranges::none_of(*classes, holds)) return std::string(1, delim);
    }
    return "";
  }
  for (const char delim : kDelimiters) {
    std::set<std::string> labels, classes;
    bool sets = false, empty = false;
    for (size_t i = first; i < cells.size(); ++i) {
      const std::vector<std::string> parts = PartsOf(cells[i], delim);
      sets = sets || parts.size() > 1;
      empty = empty || (parts.size() > 1 && std::ranges::count(parts, "") > 0);
      labels.insert(cells[i]);
      classes.insert(parts.begin(), parts.end());
    }
    classes.erase(""), labels.erase("");
    // Names of classes may hold a comma.
    if (sets && !empty && (delim != ',' || classes.size() < labels.size()))
      return std::string(1, delim);
  }
  return "";
}

bool NamesText(const std::string& name) {
  return Lower(name) == "text";
}

// Whether there are three words or more in most cells.
bool HoldsTexts(const std::vector<std::string>& cells, size_t first) {
  size_t texts = 0;
  for (size_t i = first; i < cells.size(); ++i)
    texts += std::ranges::count(Trim(cells[i], " \t\r\n"), ' ') >= 2;
  return texts > 0 && 2 * texts > cells.size() - first;
}

bool HoldsClasses(const std::vector<std::string>& cells, size_t first) {
  const std::set<std::string> values(cells.begin() + static_cast<std::ptrdiff_t>(first),
                                     cells.end());
  return values.size() > 1 && values.size() * 3 <= cells.size() - first && !values.contains("");
}

}  // namespace

std::optional<FoundTextColumns> FindTextColumns(const std::string& path) {
  const std::string ending = PlainEnding(path);
  const bool json = ending == ".jsonl" || ending == ".ndjson",
             tabs = ending == ".tsv" || ending == ".tab";
  if (!json && !tabs && ending != ".csv" && ending != ".txt") return std::nullopt;
  std::string text;
  try {
    text = PlainText(ReadMaybeGzip(path, kMostTableBytes), path);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kData) throw;
    return std::nullopt;
  }
  Columns columns = json ? JsonColumns(text) : TableColumns(path, std::move(text), tabs);
  if (columns.rows() < kLeastRows && ending != ".txt" && !columns.damaged) {
    Throw(ErrorKind::kData,
          "{}: {} too few to tell what the columns hold; at least {} are needed, and hundreds for "
          "useful results",
          path, columns.rows() == 1 ? "1 line is" : format("{} lines are", columns.rows()),
          kLeastRows);
  }
  if (columns.rows() < kLeastRows) return std::nullopt;
  const auto count = columns.cells.size();
  // The first line of a table is its header if it names a label, or if no other row has its class.
  size_t first = 0;
  if (!json) {
    std::vector<std::string> names;
    bool named = false, alone = true;
    for (const auto& cells : columns.cells) {
      names.push_back(cells[0]);
      named = named || NamesLabel(cells[0]);
      if (HoldsClasses(cells, 1)) alone = alone && std::ranges::count(cells, cells[0]) == 1;
    }
    const bool one_word = std::ranges::all_of(
        names, [](const std::string& name) { return std::ranges::count(name, ' ') < 2; });
    if (named || (alone && one_word)) columns.names = names, first = 1;
  }
  const auto name_of = [&](size_t c) {
    return columns.names.empty() ? std::to_string(c) : columns.names[c];
  };
  std::vector<size_t> labels;
  for (size_t c = 0; c < count; ++c) {
    if (!columns.names.empty() && NamesLabel(columns.names[c])) labels.push_back(c);
  }
  const bool named_label = !labels.empty();
  for (size_t c = 0; c < count && labels.empty(); ++c) {
    if (HoldsClasses(columns.cells[c], first) && !HoldsTexts(columns.cells[c], first))
      labels.push_back(c);
  }
  FoundTextColumns found;
  for (size_t c = 0; c < count; ++c) {
    const bool label = !labels.empty() && c == labels[0];
    const bool named = named_label && NamesText(columns.names[c]);
    if (!label && (named || HoldsTexts(columns.cells[c], first))) found.texts.push_back(name_of(c));
  }
  if (labels.size() != 1 || found.texts.empty()) return std::nullopt;
  found.label = name_of(labels[0]);
  found.label_delim = LabelDelimiter(columns.cells[labels[0]], first, json);
  return found;
}

std::string TrainingTextsIn(const std::string& folder) {
  constexpr std::string_view kEndings[] = {".tsv", ".csv", ".tab", ".jsonl", ".ndjson"};
  std::error_code none;
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    const std::string path = entry.path().string();
    const bool table = std::ranges::find(kEndings, PlainEnding(path)) != std::end(kEndings);
    const bool named = Lower(entry.path().filename().string()).find("train") != std::string::npos;
    if (table && named && entry.is_regular_file(none) && FindTextColumns(path))
      found.push_back(path);
  }
  return found.size() == 1 ? found[0] : "";
}

}  // namespace mxtrain::io
