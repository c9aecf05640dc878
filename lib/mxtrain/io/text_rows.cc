// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/text_rows.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/read_json.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/first_record.h"
#include "mxtrain/io/internal/csv_sheet.h"
#include "mxtrain/io/internal/plain_text.h"
#include "mxtrain/io/internal/table_text.h"
#include "mxtrain/io/internal/text_columns.h"

namespace mxtrain::io {
namespace {

constexpr size_t kMostTextBytes = size_t{16} << 30, kJudgedBytes = size_t{1} << 16;
constexpr size_t kMostNamesTold = 8;

enum class RowFormat { kTable, kJsonLines, kLines };

// A column by its number, and not by a name.
bool IsColumnNumber(const std::string& name) {
  return !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
}

std::string TextEndingOf(const std::string& path) {
  std::filesystem::path name(Lower(path));
  if (name.extension() == ".gz") name.replace_extension();
  return name.extension().string();
}

// The name of a file with tabs says so, whatever its texts hold.
std::string DelimiterFor(const std::string& path, const TextColumns& columns) {
  const std::string ending = TextEndingOf(path);
  const bool tabs = ending == ".tsv" || ending == ".tab";
  return tabs && columns.delimiter == "auto" ? "tab" : columns.delimiter;
}

bool NamesTextColumn(const std::string& text, const TextColumns& columns) {
  const std::vector<std::string> cells =
      FirstRecord(text.substr(0, std::min(text.find('\n'), kJudgedBytes)), columns.delimiter);
  return std::ranges::all_of(columns.texts, [&cells](const std::string& name) {
    return std::ranges::find(cells, name) != cells.end();
  });
}

RowFormat FormatOf(const std::string& path, const std::string& text, const TextColumns& columns) {
  const std::string ending = TextEndingOf(path);
  if (ending == ".jsonl" || ending == ".ndjson") return RowFormat::kJsonLines;
  if (ending == ".tsv" || ending == ".csv" || ending == ".tab") return RowFormat::kTable;
  const bool labelled = !columns.label.empty();
  if (ending == ".txt") return labelled ? RowFormat::kTable : RowFormat::kLines;
  if (text.find_first_not_of(" \t\r\n") == text.find('{') && text.find('{') != std::string::npos)
    return RowFormat::kJsonLines;
  return labelled || NamesTextColumn(text, columns) ? RowFormat::kTable : RowFormat::kLines;
}

class TextTable {
 public:
  TextTable(const std::string& path, std::string text, const TextColumns& columns)
      : columns_(columns), text_(path, std::move(text), DelimiterFor(path, columns)) {
    sheet_.file = path;
    sheet_.delimiter = text_.delimiter();
  }

  TextRows Read() {
    text_.ForEachRecord([this](const std::vector<std::string_view>& cells, int64_t line) {
      if (sheet_.columns == 0 && Begin(cells, line)) return;
      Add(cells, line);
    });
    return std::move(rows_);
  }

 private:
  // True for a header.
  bool Begin(const std::vector<std::string_view>& cells, int64_t line) {
    sheet_.columns = cells.size();
    sheet_.first_holds_blanks = HoldsBlanks(cells[0]);
    std::vector<std::string> wanted = columns_.texts;
    if (!columns_.label.empty()) wanted.push_back(columns_.label);
    const bool header = !std::ranges::all_of(wanted, IsColumnNumber);
    if (header) sheet_.header.assign(cells.begin(), cells.end());
    rows_.note = header ? format("{}: line {} is taken as the header: {}", sheet_.file, line,
                                 sheet_.Names(kMostNamesTold))
                        : format(
                              "{}: line {} is taken as an example, not as the header: the "
                              "columns are given by their numbers",
                              sheet_.file, line);
    for (const std::string& name : columns_.texts) places_.push_back(Find(name, "text_columns"));
    if (!columns_.label.empty()) label_ = Find(columns_.label, "label_column");
    return header;
  }

  size_t Find(const std::string& name, const char* parameter) const {
    try {
      return sheet_.Find(name);
    } catch (const Error& error) {
      std::string_view what = error.what();
      if (what.starts_with("csv: ")) what.remove_prefix(5);
      Throw(error.kind(), "{} = '{}': {}", parameter, name, what);
    }
  }

  void Add(const std::vector<std::string_view>& cells, int64_t line) {
    if (cells.size() != sheet_.columns) {
      Throw(ErrorKind::kData,
            "{}:{}: {}, but the lines before have {}; a text with {} in it is written in quotes",
            sheet_.file, line, Counted(cells.size(), "column"), sheet_.columns, sheet_.delimiter);
    }
    std::string text;
    for (const size_t place : places_) {
      if (!text.empty() && !cells[place].empty()) text += ' ';
      text += cells[place];
    }
    rows_.Add(std::move(text), line);
    if (label_) rows_.labels.emplace_back(Trim(cells[*label_], " \t\r\n"));
  }

  const TextColumns& columns_;
  TableText text_;
  Sheet sheet_;
  std::vector<size_t> places_;
  std::optional<size_t> label_;
  TextRows rows_;
};

class JsonRows {
 public:
  JsonRows(const std::string& path, const TextColumns& columns) : path_(path), columns_(columns) {}

  TextRows Read(std::string_view text, int64_t first_line) {
    ForEachLine(text,
                [&](std::string_view line, int64_t number) { Add(line, number + first_line - 1); });
    return std::move(rows_);
  }

 private:
  [[noreturn]] void Fail(int64_t line, const std::string& what) const {
    Throw(ErrorKind::kData, "{}:{}: {}", path_, line, what);
  }

  void Add(std::string_view text, int64_t line) {
    const Expected<FileJson, Refusal> read = ReadJson<FileJson>(text);
    if (!read && !IsUtf8(text)) Fail(line, "it is not UTF-8");
    if (!read) Fail(line, read.error().reason + "; each line is an object");
    const FileJson& json = *read;
    if (!json.is_object())
      Fail(line, format("it is not an object, but {}; expected {{\"{}\": ..., \"{}\": ...}}",
                        json.type_name(), columns_.texts[0],
                        columns_.label.empty() ? "label" : columns_.label));
    std::string joined;
    for (const std::string& key : columns_.texts) {
      const FileJson& value = At(json, key, "text_columns", line);
      if (!value.is_string()) Fail(line, format("'{}' is not a text", key));
      const auto& part = value.get_ref<const std::string&>();
      if (!joined.empty() && !part.empty()) joined += ' ';
      joined += part;
    }
    rows_.Add(std::move(joined), line);
    if (!columns_.label.empty())
      rows_.labels.push_back(LabelOf(At(json, columns_.label, "label_column", line), line));
  }

  const FileJson& At(const FileJson& json, const std::string& key, const char* parameter,
                     int64_t line) const {
    const auto found = json.find(key);
    if (found != json.end()) return *found;
    std::vector<std::string> keys;
    for (const auto& [name, value] : json.items()) keys.push_back(Shortened(name));
    Fail(line, format("there is no key '{}' ({}); there {} {}", key, parameter,
                      keys.size() == 1 ? "is" : "are",
                      keys.empty() ? "none" : FirstOf(keys, kMostNamesTold)));
  }

  std::string LabelOf(const FileJson& value, int64_t line) const {
    if (value.is_string()) return value.get<std::string>();
    if (value.is_number_integer() || value.is_boolean()) return value.dump();
    if (!value.is_array())
      Fail(line, format("'{}' is neither a word nor an integer", columns_.label));
    if (columns_.label_delim.empty())
      Fail(line, format("'{}' is a list of classes, which needs label_delim, such as ';'",
                        columns_.label));
    std::string labels;
    for (const FileJson& item : value) {
      if (item.is_array()) Fail(line, format("'{}' is a list of lists", columns_.label));
      const std::string label = LabelOf(item, line);
      if (label.find(columns_.label_delim) != std::string::npos) {
        Fail(line, format("the class '{}' holds '{}', the label_delim; choose another",
                          Shortened(label), columns_.label_delim));
      }
      labels += (labels.empty() ? "" : columns_.label_delim) + label;
    }
    return labels;
  }

  const std::string& path_;
  const TextColumns& columns_;
  TextRows rows_;
};

// Empty lines too, so that predictions are as many as lines.
TextRows LinesOf(std::string_view text) {
  TextRows rows;
  for (int64_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    rows.Add(std::string(Trim(text.substr(0, end), kBlanks)), number);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return rows;
}

}  // namespace

TextRows ReadJsonRows(const std::string& path, std::string_view lines, int64_t first_line,
                      const TextColumns& columns) {
  return JsonRows(path, columns).Read(lines, first_line);
}

TextRows ReadTextRows(const std::string& path, const TextColumns& columns) {
  std::string text = PlainText(ReadMaybeGzip(path, kMostTextBytes, Readable::kFileOrPipe), path);
  switch (FormatOf(path, text, columns)) {
    case RowFormat::kJsonLines:
      return ReadJsonRows(path, text, 1, columns);
    case RowFormat::kLines:
      return LinesOf(text);
    case RowFormat::kTable:
      break;
  }
  return TextTable(path, std::move(text), columns).Read();
}

}  // namespace mxtrain::io
