// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/list_source.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>
#include <set>

#include "mxtrain/base/file.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/example_weight.h"
#include "mxtrain/io/internal/image_files.h"
#include "mxtrain/io/internal/plain_text.h"
#include "mxtrain/io/internal/text_columns.h"
#include "mxtrain/io/list_line.h"
#include "mxtrain/io/source_factory.h"

namespace mxtrain::io {
namespace {

constexpr size_t kMostListBytes = size_t{4} << 30;

struct Line {
  int64_t number = 0;
  std::string path;
  std::vector<std::string> labels;
  float weight = 1;
};

// "3.000000" is class 3.
std::string WithoutZeroDecimals(std::string_view text) {
  const size_t point = text.find('.');
  const bool whole = point != std::string_view::npos && point > 0 &&
                     text.find_first_not_of('0', point + 1) == std::string_view::npos;
  return std::string(whole ? text.substr(0, point) : text);
}

// Removes the weight from the cells of a line.
float TakeWeight(size_t column, const std::string& place, std::vector<std::string_view>* cells) {
  if (column >= cells->size()) {
    Throw(ErrorKind::kData,
          "{}: {}, but the weight is column {}, counted from 0, which is the path", place,
          Counted(cells->size(), "column"), column);
  }
  float weight = 0;
  if (!ParseNumber((*cells)[column], &weight)) {
    Throw(ErrorKind::kData, "{}: the weight '{}' is not a number", place,
          Shortened((*cells)[column]));
  }
  cells->erase(cells->begin() + static_cast<std::ptrdiff_t>(column));
  return weight;
}

// Path, label and weight; a label of `sets` may be an empty column.
constexpr size_t kColumnsWithWeight = 3;

std::vector<std::string_view> SplitLine(std::string_view text, bool sets, size_t weight_column) {
  return SplitListLine(text, sets && weight_column > 0 ? kColumnsWithWeight : 0);
}

// `sets`: a label may be missing, and is kept as text.
Line Parse(std::string_view text, int64_t number, const std::string& file, bool sets,
           size_t weight_column) {
  std::vector<std::string_view> cells = SplitLine(text, sets, weight_column);
  float weight = 1;
  if (weight_column > 0) weight = TakeWeight(weight_column, format("{}:{}", file, number), &cells);
  if (sets && cells.size() == 1) cells.emplace_back();
  if (cells.size() < 2) {
    Throw(ErrorKind::kData, "{}:{}: expected PATH LABEL, got '{}'", file, number, Shortened(text));
  }
  CheckPath(cells[0], [&] { return format("{}:{}", file, number); });
  Line line{number, std::string(cells[0]), {}, weight};
  for (size_t i = 1; i < cells.size(); ++i)
    line.labels.push_back(sets ? std::string(cells[i]) : WithoutZeroDecimals(cells[i]));
  return line;
}

struct LineOfText {
  std::string_view text;
  int64_t number = 0;
};

// Whether lines that may have no weights have them, by their columns: a line without a label of
// `sets` does not tell it.
bool HaveWeights(const std::vector<LineOfText>& lines, bool sets, size_t weight_column) {
  const size_t needed = std::max(kColumnsWithWeight, weight_column + 1);
  const auto has = [&](const LineOfText& line) {
    return SplitLine(line.text, sets, weight_column).size() >= needed;
  };
  return sets ? std::ranges::any_of(lines, has) : has(lines[0]);
}

// *weight_column: that of the parameters; becomes 0 if the lines have no weights.
std::vector<Line> ReadLines(const std::string& file, bool sets, bool weight_optional,
                            size_t* weight_column) {
  const std::string all =
      PlainText(ReadMaybeGzip(file, kMostListBytes, Readable::kFileOrPipe), file);
  std::vector<LineOfText> texts;
  ForEachLine(all, [&](std::string_view text, int64_t number) {
    if (!text.starts_with('#')) texts.push_back({text, number});
  });
  if (texts.empty()) Throw(ErrorKind::kData, "list: {} names no images", file);
  if (*weight_column > 0 && weight_optional && !HaveWeights(texts, sets, *weight_column))
    *weight_column = 0;
  std::vector<Line> lines;
  for (const auto& [text, number] : texts) {
    lines.push_back(Parse(text, number, file, sets, *weight_column));
    const size_t wanted = lines[0].labels.size();
    if (lines.back().labels.size() == wanted) continue;
    Throw(ErrorKind::kData,
          "{}:{}: {}, but the lines before have {}; a path with spaces needs tabs or commas", file,
          number, Counted(lines.back().labels.size(), "label"), wanted);
  }
  return lines;
}

// Mostly distinct labels with fractions are not classes.
void RefuseValues(const std::vector<std::string>& words,
                  const std::function<std::string(size_t)>& place) {
  constexpr size_t kMostClasses = 20;
  const auto is_value = [](const std::string& word) {
    float ignored = 0;
    return word.find('.') != std::string::npos && ParseNumber(word, &ignored);
  };
  std::set<std::string> values;
  std::copy_if(words.begin(), words.end(), std::inserter(values, values.end()), is_value);
  if (values.size() <= std::max(kMostClasses, words.size() / 4)) return;
  const auto first =
      static_cast<size_t>(std::find_if(words.begin(), words.end(), is_value) - words.begin());
  Throw(ErrorKind::kData,
        "{}: the label {} is a value, but a list names classes; for values use a table with a "
        "header line: source: csv, columns: "
        "{{data: FILE, LABEL: VALUE}}",
        place(first), Shortened(words[first]));
}

}  // namespace

std::unique_ptr<Source> NewListSource(const ListParam& param) {
  const bool sets = !param.label_delim.empty();
  auto weight_column = static_cast<size_t>(param.weight_column);
  const std::vector<Line> lines =
      ReadLines(param.path, sets, param.weight_optional, &weight_column);
  const std::filesystem::path root = param.root.empty()
                                         ? std::filesystem::path(param.path).parent_path()
                                         : std::filesystem::path(param.root);
  const auto place = [&](size_t i) { return format("{}:{}", param.path, lines[i].number); };
  ImageTable table;
  table.label_width = static_cast<int64_t>(lines[0].labels.size());
  std::vector<std::string> words;
  for (const Line& line : lines) {
    table.paths.push_back((root / line.path).string());
    words.push_back(line.labels[0]);
    if (weight_column > 0) table.weights.push_back(line.weight);
  }
  if (weight_column > 0) CheckWeights(table.weights, param.path, place);
  if (sets && table.label_width != 1) {
    Throw(ErrorKind::kData,
          "{}: {} labels, separated like path and label; with label_delim = '{}' expected one: put "
          "a tab or a comma "
          "between path and label",
          place(0), table.label_width, param.label_delim);
  }
  if (sets) {
    ClassLabels labels = NumberClassSets(words, param.label_delim, param.classes, place);
    table.labels = std::move(labels.labels);
    table.classes = std::move(labels.classes);
    table.label_width = static_cast<int64_t>(table.classes.size());
    table.label_sets = true;
    return NewImageFiles(std::move(table));
  }
  if (table.label_width == 1) {
    RefuseValues(words, place);
    ClassLabels labels = NumberClasses(words, param.classes, place);
    table.labels = std::move(labels.labels);
    table.classes = std::move(labels.classes);
    return NewImageFiles(std::move(table));
  }
  for (size_t i = 0; i < lines.size(); ++i) {
    for (const std::string& label : lines[i].labels) {
      if (!ParseNumber(label, &table.labels.emplace_back()))
        Throw(ErrorKind::kData, "{}: '{}' is not a number; several labels per line are numbers",
              place(i), Shortened(label));
    }
  }
  return NewImageFiles(std::move(table));
}

MXTRAIN_SOURCE(list_source, sources) {
  SourceKind list =
      SourceKindOf<ListParam, NewListSource>("list", "a text file that lists images and labels");
  list.recognize = [](const std::string& path) -> std::optional<Recognition> {
    if (std::filesystem::is_directory(path)) return std::nullopt;
    return Recognition{false, {{"path", path}}};
  };
  sources.Add(std::move(list));
}

}  // namespace mxtrain::io
