// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/csv_source.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "mxtrain/base/text.h"
#include "mxtrain/io/column_statistics.h"
#include "mxtrain/io/internal/csv_fields.h"
#include "mxtrain/io/internal/csv_numbers.h"
#include "mxtrain/io/internal/csv_sheet.h"
#include "mxtrain/io/internal/header_line.h"
#include "mxtrain/io/internal/image_files.h"
#include "mxtrain/io/internal/table_text.h"
#include "mxtrain/io/internal/text_columns.h"
#include "mxtrain/io/list_line.h"
#include "mxtrain/io/source_factory.h"

namespace mxtrain::io {
namespace {

constexpr std::string_view kBlanksInQuotes = " \t\r\n";
constexpr size_t kNamesTold = 8;  // of columns, in messages

class CsvSource final : public Source {
 public:
  explicit CsvSource(const CsvParam& param) : param_(param) {
    CheckCsvParam(param);
    TableText text(param.path.empty() ? param.data_csv : param.path, param.delimiter);
    ReadTable(&text, &sheet_, [this] { PlanFields(); });
    const size_t rows = sheet_.lines.size();
    for (CsvField& field : fields_.fields) FinishWords(&field);
    for (CsvField& field : fields_.fields) FinishCodes(&field);
    if (!param.label_csv.empty()) ReadLabels(rows);
    DropRows();
    for (const CsvField& field : fields_.fields) {
      if (!field.IsWeight()) continue;
      CheckWeights(field.numbers, sheet_.file,
                   [&](size_t row) { return sheet_.Place(sheet_.lines[row], field.columns[0]); });
    }
    for (CsvField& field : fields_.fields) FillAndStandardize(&field);
    for (CsvField& field : fields_.fields) TellBlurred(&field);
    AddFound();
    SayMissing();
  }

  int64_t size() const override { return static_cast<int64_t>(sheet_.lines.size()); }
  const std::vector<FieldSpec>& data_fields() const override { return fields_.data; }
  const std::vector<FieldSpec>& label_fields() const override { return fields_.labels; }
  void Read(int64_t index, Sample* sample) const override {
    sample->data.resize(fields_.data.size());
    sample->labels.resize(fields_.labels.size());
    size_t data = 0, labels = 0;
    const auto row = static_cast<size_t>(index);
    for (const CsvField& field : fields_.fields) {
      FieldValue& value = field.label ? sample->labels[labels++] : sample->data[data++];
      if (field.paths.empty()) {
        value.values = {field.numbers.data() + row * field.width, field.width};
      } else {
        value.encoded = ReadImageFile(field.paths[row]);
      }
    }
  }
  std::span<const float> LabelOf(int64_t index, size_t position, Sample*) const override {
    for (const CsvField& field : fields_.fields) {
      if (!field.label || position-- > 0) continue;
      if (field.image) break;
      return {field.numbers.data() + static_cast<size_t>(index) * field.width, field.width};
    }
    return {};
  }
  std::span<const float> Rests(int64_t index, bool label, size_t position) const override {
    for (const CsvField& field : fields_.fields) {
      if (field.label != label || position-- > 0) continue;
      if (field.rests.empty()) break;
      return {field.rests.data() + static_cast<size_t>(index) * field.width, field.width};
    }
    return {};
  }
  std::string Name(int64_t index) const override {
    const auto row = static_cast<size_t>(index);
    if (!keys_.empty()) return keys_[row];
    return param_.key == "#" ? std::to_string(sheet_.numbers[row])
                             : format("{}:{}", sheet_.file, sheet_.lines[row]);
  }
  std::string GroupOf(int64_t index) const override {
    return groups_.empty() ? "" : groups_[static_cast<size_t>(index)];
  }
  std::string FileOf(int64_t index) const override {
    const auto images = [](const CsvField& field) { return field.image && !field.label; };
    if (std::count_if(fields_.fields.begin(), fields_.fields.end(), images) != 1) return "";
    return std::find_if(fields_.fields.begin(), fields_.fields.end(), images)
        ->paths[static_cast<size_t>(index)];
  }
  std::optional<int> ClassOf(int64_t index) const override {
    const auto named = std::find_if(fields_.fields.begin(), fields_.fields.end(),
                                    [](const CsvField& field) { return !field.classes.empty(); });
    if (named == fields_.fields.end() || label_sets_) return std::nullopt;
    return static_cast<int>(named->numbers[static_cast<size_t>(index)]);
  }
  const std::vector<std::string>& class_names() const override { return class_names_; }

 private:
  // Calls `plan` once the columns are known.
  template <typename F>
  void ReadTable(TableText* text, Sheet* sheet, const F& plan) {
    sheet->file = text->path();
    sheet->delimiter = text->delimiter();
    std::vector<std::vector<std::string_view>> first;  // records, until the first line is judged
    std::vector<int64_t> lines;
    const auto begin = [&] {
      const bool header = TellFirstLine(first, lines[0], sheet);
      plan();
      for (size_t i = header ? 1 : 0; i < first.size(); ++i) AddExample(first[i], lines[i], sheet);
    };
    text->ForEachRecord([&](const std::vector<std::string_view>& cells, int64_t line) {
      if (sheet->columns > 0) return AddExample(cells, line, sheet);
      first.push_back(cells);
      lines.push_back(line);
      if (first.size() == kRecordsJudged) begin();
    });
    if (sheet->columns == 0 && !first.empty()) begin();
    if (sheet->lines.empty()) {
      Throw(ErrorKind::kData, "{} holds no line of {}{}", sheet->file,
            NamesFields(param_) ? "data" : "numbers",
            sheet->header.empty() ? "" : format(" below line {}, the header", lines[0]));
    }
  }

  // Takes the first record as the header, or not, and says which; true if so.
  bool TellFirstLine(const std::vector<std::vector<std::string_view>>& records, int64_t line,
                     Sheet* sheet) {
    const FirstLine verdict =
        NamesColumns(param_) ? FirstLine{.header = true} : JudgeFirstLine(records);
    sheet->columns = records[0].size();
    sheet->first_holds_blanks = HoldsBlanks(records[0][0]);
    if (verdict.header) {
      for (const std::string_view name : records[0])
        sheet->header.emplace_back(Trim(name, kBlanks));
      notes_.push_back(format("{}: line {} is taken as the header: {}", sheet->file, line,
                              sheet->Names(kNamesTold)));
    } else {
      notes_.push_back(
          format("{}: line {} is taken as an example, not as the header", sheet->file, line));
    }
    if (verdict.doubtful) {
      warnings_.push_back(notes_.back() +
                          (verdict.header
                               ? "; if it is an example, put a line with names of the columns above"
                               : "; if it is the header, give the columns by its names"));
      notes_.pop_back();
    }
    return verdict.header;
  }

  void AddExample(const std::vector<std::string_view>& cells, int64_t line, Sheet* sheet) {
    if (cells.size() != sheet->columns) {
      Throw(ErrorKind::kData, "{}:{}: {}, but the lines before have {}", sheet->file, line,
            Counted(cells.size(), "column"), sheet->columns);
    }
    sheet->lines.push_back(line);
    sheet->numbers.push_back(static_cast<int64_t>(sheet->lines.size()));
    AddCells(*sheet, cells);
  }

  // Fields of the columns named by the parameters, or of all columns.
  void PlanFields() {
    if (!param_.key.empty() &&
        (param_.key != "#" || std::count(sheet_.header.begin(), sheet_.header.end(), "#") > 0)) {
      key_column_ = sheet_.Find(param_.key);
    }
    if (!param_.group.empty()) group_column_ = sheet_.Find(param_.group);
    fields_ = PlanCsvFields(param_, sheet_);
    label_sets_ = !param_.label_delim.empty();
    if (!NamesFields(param_)) return;
    if (std::string repeated = sheet_.RepeatedNames(); !repeated.empty())
      warnings_.push_back(std::move(repeated));
  }

  void AddCells(const Sheet& sheet, const std::vector<std::string_view>& cells) {
    if (&sheet == &sheet_ && key_column_) keys_.emplace_back(cells[*key_column_]);
    if (&sheet == &sheet_ && group_column_)
      groups_.emplace_back(Trim(cells[*group_column_], kBlanksInQuotes));
    for (CsvField& field : fields_.fields) {
      if ((&sheet == &sheet_) == of_label_file(field)) continue;
      if (field.words) {
        const std::string_view cell = cells[field.columns[0]];
        // Blanks in quotes are part of a path, but not of a class.
        field.cells.push_back(field.image ? cell : Trim(cell, kBlanksInQuotes));
        continue;
      }
      for (size_t k = 0; k < field.columns.size(); ++k) {
        const size_t column = field.columns[k];
        if (field.Indicates(k)) {
          AppendNumber("", Missing(Trim(cells[column], kBlanksInQuotes)) ? 1 : 0, &field);
          continue;
        }
        if (field.HoldsCodes(k)) {
          field.codes[k].cells.push_back(Trim(cells[column], kBlanksInQuotes));
          AppendNumber("", 0, &field);  // until the column is read
          continue;
        }
        AddNumber(sheet, sheet.lines.size() - 1, column, cells[column], &field);
      }
    }
  }
  void AddNumber(const Sheet& sheet, size_t row, size_t column, std::string_view cell,
                 CsvField* field) {
    cell = Trim(cell, kBlanksInQuotes);
    AppendNumber(cell, NumberIn(sheet, *field, row, column, cell), field, reads_commas());
  }
  bool reads_commas() const { return param_.decimal == CsvParam::kComma; }
  bool Parses(std::string_view cell, float* value) const {
    return reads_commas() ? ParseCommaNumber(cell, value) : ParseNumber(cell, value);
  }
  bool of_label_file(const CsvField& field) const {
    return field.label && !param_.label_csv.empty();
  }

  bool DeclaredMissing(std::string_view cell) const {
    return std::ranges::find(param_.missing_words, cell) != param_.missing_words.end();
  }
  bool Missing(std::string_view cell) const { return IsMissing(cell) || DeclaredMissing(cell); }

  // NaN if missing, which is recorded.
  float NumberIn(const Sheet& sheet, const CsvField& field, size_t row, size_t column,
                 std::string_view cell) {
    float value = 0;
    if (Missing(cell)) {
      NoteMissing(sheet, field, row, column, cell);
      return kMissing;
    }
    if (!Parses(cell, &value)) {
      sheet.ThrowNoNumber(sheet.lines[row], column, cell, reads_commas());
    }
    if (!std::isfinite(value))
      Throw(ErrorKind::kData, "{}: '{}' is not a finite number",
            sheet.Place(sheet.lines[row], column), Shortened(cell));
    return value;
  }

  void NoteMissing(const Sheet& sheet, const CsvField& field, size_t row, size_t column,
                   std::string_view cell) {
    if (param_.missing == CsvParam::kError && field.image) {
      Throw(ErrorKind::kData, "{}: the path is empty; missing: drop skips such rows",
            sheet.Place(sheet.lines[row], column));
    }
    if (param_.missing == CsvParam::kError && field.IsWeight()) {
      Throw(ErrorKind::kData, "{}: the example has no weight; missing: drop skips such rows",
            sheet_.Place(sheet_.lines[row], column));
    }
    if (param_.missing == CsvParam::kError) {
      Throw(ErrorKind::kData,
            "{}: {}; missing: mean replaces such cells of inputs by the column's mean, missing: "
            "drop skips their rows",
            sheet.Place(sheet.lines[row], column),
            cell.empty() ? "the cell is empty" : format("'{}' is not a number", cell));
    }
    if (param_.missing == CsvParam::kMean && !field.label && !field.words) {
      ++filled_[column];
    } else {
      dropped_.push_back(row);
    }
  }

  // Converts the text in a field's column to paths or numbers.
  void FinishWords(CsvField* field) {
    if (!field->words) return;
    if (field->image) {
      MakePaths(field);
    } else if (label_sets_ && class_names_.empty()) {
      NumberLabelSets(field);
    } else if (const std::vector<std::string> given = GivenClasses(*field);
               !given.empty() || HoldsWords(field->cells, field->columns[0])) {
      NumberLabels(field, given);
    } else {
      for (size_t row = 0; row < field->cells.size(); ++row)
        AddNumber(sheet_, row, field->columns[0], field->cells[row], field);
    }
    field->cells = {};
  }

  void MakePaths(CsvField* field) {
    const std::filesystem::path root = param_.root.empty()
                                           ? std::filesystem::path(sheet_.file).parent_path()
                                           : std::filesystem::path(param_.root);
    for (size_t row = 0; row < field->cells.size(); ++row) {
      if (field->cells[row].empty()) {
        NoteMissing(sheet_, *field, row, field->columns[0], "");
        field->paths.emplace_back();  // of a row that is dropped
        continue;
      }
      CheckPath(field->cells[row],
                [&] { return sheet_.Place(sheet_.lines[row], field->columns[0]); });
      field->paths.push_back((root / field->cells[row]).string());
    }
  }

  std::vector<std::string> GivenClasses(const CsvField& field) const {
    std::vector<std::string> own = ValuesOf(param_.field_classes, "field_classes", field.name);
    return own.empty() && class_names_.empty() ? param_.classes : own;
  }

  // A column of numbers with a typo is not a column of words, nor is one of decimal commas.
  bool HoldsWords(const std::vector<std::string_view>& cells, size_t column) const {
    float ignored = 0;
    size_t words = 0, numbers = 0, commas = 0, first = 0;
    for (size_t row = 0; row < cells.size(); ++row) {
      if (Missing(cells[row])) continue;
      const bool number = Parses(cells[row], &ignored);
      if (!number && words == 0) first = row;
      ++(number ? numbers : words);
      commas += !number && HasDecimalComma(cells[row]) ? 1 : 0;
    }
    const bool decimals = param_.decimal == CsvParam::kAuto && commas == words;
    if (words > 0 && (numbers > words || decimals))
      sheet_.ThrowNoNumber(sheet_.lines[first], column, cells[first], reads_commas());
    return words > 0;
  }

  void FinishCodes(CsvField* field) {
    for (size_t k = 0; k < field->codes.size(); ++k) {
      CsvCodes& codes = field->codes[k];
      const bool given = !codes.words.empty();
      if (given || HoldsWords(codes.cells, field->columns[k])) {
        if (!given) FindWords(&codes, field->columns[k]);
        NumberWords(given, k, field);
      } else {
        ReadCodes(k, field);
      }
      codes.cells = {};
    }
  }

  void FindWords(CsvCodes* codes, size_t column) {
    std::set<std::string_view> words;
    for (const std::string_view cell : codes->cells) {
      if (!Missing(cell)) words.insert(cell);
    }
    codes->words.assign(words.begin(), words.end());
    const auto count = static_cast<int64_t>(words.size());
    if (count < codes->rows) {
      notes_.push_back(
          format("{}: {} holds words: {}, codes 1 to {}; 0 is a word that is unknown or missing",
                 sheet_.file, sheet_.ColumnName(column),
                 count == 1 ? "1 category" : format("{} categories", count), count));
      return;
    }
    Throw(ErrorKind::kConfig,
          "csv: {} of {} holds {} different words; with 0, for a word that is unknown or missing, "
          "the layer "
          "that reads them needs {} rows, and has {}",
          sheet_.ColumnName(column), sheet_.file, count, count + 1, codes->rows);
  }

  void NumberWords(bool given, size_t k, CsvField* field) {
    const CsvCodes& codes = field->codes[k];
    std::map<std::string_view, size_t> numbers;
    for (size_t i = 0; i < codes.words.size(); ++i) numbers.emplace(codes.words[i], i + 1);
    int64_t unknown = 0;
    size_t first = 0;
    for (size_t row = 0; row < codes.cells.size(); ++row) {
      const auto found = numbers.find(codes.cells[row]);
      const bool known = found != numbers.end();
      field->numbers[row * field->width + k] = known ? static_cast<float>(found->second) : 0.0F;
      if (known || Missing(codes.cells[row])) continue;
      if (unknown++ == 0) first = row;
    }
    if (!given || unknown == 0) return;
    warnings_.push_back(
        format("{}: {} of {} hold{} words that the training data does not, read as unknown "
               "(first: line {}, '{}')",
               sheet_.file, Counted(unknown, "cell"), sheet_.ColumnName(field->columns[k]),
               unknown == 1 ? "s" : "", sheet_.lines[first], Shortened(codes.cells[first])));
  }

  void ReadCodes(size_t k, CsvField* field) {
    const CsvCodes& codes = field->codes[k];
    for (size_t row = 0; row < codes.cells.size(); ++row) {
      const size_t column = field->columns[k];
      if (Missing(codes.cells[row]) && param_.missing == CsvParam::kMean) {
        Throw(ErrorKind::kData,
              "{}: the code is missing, and codes have no mean; missing: drop skips such rows",
              sheet_.Place(sheet_.lines[row], column));
      }
      const float code = NumberIn(sheet_, *field, row, column, codes.cells[row]);
      field->numbers[row * field->width + k] = code;
      const bool good = std::isnan(code) || (code >= 0 && code < static_cast<float>(codes.rows) &&
                                             code == std::floor(code));
      if (good) continue;
      Throw(ErrorKind::kData,
            "{}: {} is no code of the layer that reads it, which has {} rows: codes are whole "
            "numbers from 0 to {}",
            sheet_.Place(sheet_.lines[row], column), codes.cells[row], codes.rows, codes.rows - 1);
    }
  }

  void NumberLabels(CsvField* field, const std::vector<std::string>& given) {
    std::vector<std::string> words;
    std::vector<size_t> rows;
    for (size_t row = 0; row < field->cells.size(); ++row) {
      if (field->cells[row].empty() || DeclaredMissing(field->cells[row])) {
        NoteMissing(sheet_, *field, row, field->columns[0], "");
        continue;
      }
      words.emplace_back(field->cells[row]);
      rows.push_back(row);
    }
    ClassLabels classes = NumberClasses(words, given, [&](size_t i) {
      return format("{}:{}", sheet_.file, sheet_.lines[rows[i]]);
    });
    field->numbers.assign(field->cells.size(), kMissing);
    for (size_t i = 0; i < rows.size(); ++i) field->numbers[rows[i]] = classes.labels[i];
    field->classes = std::move(classes.classes);
    if (class_names_.empty()) class_names_ = field->classes;
  }

  void NumberLabelSets(CsvField* field) {
    const std::vector<std::string> words(field->cells.begin(), field->cells.end());
    ClassLabels sets = NumberClassSets(words, param_.label_delim, param_.classes, [&](size_t row) {
      return format("{}:{}", sheet_.file, sheet_.lines[row]);
    });
    field->numbers = std::move(sets.labels);
    field->width = sets.classes.size();
    field->classes = sets.classes;
    class_names_ = std::move(sets.classes);
    fields_.SpecOf(*field)->shape = TShape{static_cast<int64_t>(field->width)};
  }

  // label_csv: a separate file.
  void ReadLabels(size_t rows) {
    TableText text(param_.label_csv, param_.delimiter);
    Sheet sheet;
    CsvField label{.name = "label", .label = true};
    ReadTable(&text, &sheet, [&] {
      for (size_t column = 0; column < sheet.columns; ++column) label.columns.push_back(column);
      label.width = sheet.columns;
      fields_.Add(label, param_.label_shape, "label_shape", sheet.file);
    });
    if (sheet.lines.size() != rows) {
      Throw(ErrorKind::kData, "{} holds {}, but {} holds {}", sheet_.file, Counted(rows, "line"),
            sheet.file, Counted(sheet.lines.size(), "label"));
    }
  }

  // Removes the recorded rows everywhere.
  void DropRows() {
    std::sort(dropped_.begin(), dropped_.end());
    dropped_.erase(std::unique(dropped_.begin(), dropped_.end()), dropped_.end());
    if (dropped_.empty()) return;
    if (dropped_.size() == sheet_.lines.size())
      Throw(ErrorKind::kData, "{}: every row has an empty cell in a column that is read",
            sheet_.file);
    first_dropped_ = format("{}:{}", sheet_.file, sheet_.lines[dropped_[0]]);
    RemoveRows(dropped_, 1, &sheet_.lines);
    RemoveRows(dropped_, 1, &sheet_.numbers);
    RemoveRows(dropped_, 1, &keys_);
    RemoveRows(dropped_, 1, &groups_);
    for (CsvField& field : fields_.fields) {
      RemoveRows(dropped_, field.width, &field.numbers);
      RemoveRows(dropped_, field.width, &field.rests);
      RemoveRows(dropped_, 1, &field.paths);
    }
  }

  void FillAndStandardize(CsvField* field) {
    const std::vector<double> means =
        NumbersOf(param_.field_means, "field_means", field->name, field->columns.size());
    const std::vector<double> stds =
        NumbersOf(param_.field_stds, "field_stds", field->name, field->columns.size());
    if (!stds.empty() && means.empty())
      Throw(ErrorKind::kConfig, "csv: '{}' has field_stds, but no field_means", field->name);
    if (means.empty() || !field->classes.empty() || !field->paths.empty()) return;
    const Standardization by{means, stds, TransformsOf(*field)};
    CheckLogarithms(by.transforms, *field);
    Standardize(by, field);
    if (!stds.empty()) fields_.SpecOf(*field)->units = UnitsOfColumns(means, stds, by.transforms);
  }

  std::vector<ColumnTransform> TransformsOf(const CsvField& field) const {
    std::vector<ColumnTransform> transforms;
    for (const std::string& text :
         ValuesOf(param_.field_transforms, "field_transforms", field.name))
      transforms.push_back(ColumnTransform::FromText(text));
    if (!transforms.empty() && transforms.size() != field.columns.size())
      Throw(ErrorKind::kConfig, "csv: field_transforms has {} for the {} columns of '{}'",
            transforms.size(), field.columns.size(), field.name);
    return transforms;
  }

  void CheckLogarithms(const std::vector<ColumnTransform>& transforms,
                       const CsvField& field) const {
    for (size_t k = 0; k < transforms.size(); ++k) {
      if (transforms[k].kind != ColumnTransform::kLog) continue;
      for (size_t row = 0; row < sheet_.lines.size(); ++row) {
        const float value = field.numbers[row * field.width + k];
        if (std::isnan(value) || value > 0) continue;
        Throw(ErrorKind::kData,
              "{}: {:.9g} has no logarithm, which the configuration takes of this column: it is "
              "for numbers above 0",
              sheet_.Place(sheet_.lines[row], field.columns[k]), value);
      }
    }
  }

  void TellBlurred(CsvField* field) {
    std::vector<std::string> blurred;
    for (const size_t k : DropSmallRests(field))
      blurred.push_back(sheet_.ColumnName(field->columns[k]));
    if (blurred.empty()) return;
    warnings_.push_back(
        format("{}: numbers of {} lose digits in float32, which holds about seven; normalize: auto "
               "standardizes them before they are rounded",
               sheet_.file, FirstOf(blurred, 8)));
  }

  void AddFound() {
    std::vector<std::string> classes, words;
    for (const CsvField& field : fields_.fields) {
      if (!label_sets_) {
        for (const std::string& name : field.classes)
          classes.push_back(format("{}={}", field.name, name));
      }
      for (size_t k = 0; k < field.codes.size(); ++k) {
        for (const std::string& word : field.codes[k].words)
          words.push_back(format("{}={}={}", field.name, k, word));
      }
    }
    if (!classes.empty()) found_.emplace_back("field_classes", params::Print(classes));
    if (!words.empty()) found_.emplace_back("field_words", params::Print(words));
  }

  void SayMissing() {
    std::vector<std::string> parts;
    int64_t cells = 0;
    for (const auto& [column, count] : filled_) {
      parts.push_back(format("{} of {}", count, sheet_.ColumnName(column)));
      cells += count;
    }
    if (cells > 0)
      warnings_.push_back(format("{}: {} replaced by the column's mean: {}", sheet_.file,
                                 Counted(cells, "empty cell"), FirstOf(parts, 8)));
    if (!dropped_.empty()) {
      warnings_.push_back(format("{}: {} of {} rows have an empty cell and are skipped (first: {})",
                                 sheet_.file, dropped_.size(),
                                 dropped_.size() + sheet_.lines.size(), first_dropped_));
    }
  }

  const CsvParam param_;
  Sheet sheet_;
  CsvFields fields_;
  std::optional<size_t> key_column_, group_column_;
  std::vector<std::string> keys_, groups_;
  // Of the first text label; none if labels are numbers, which need not be classes.
  std::vector<std::string> class_names_;
  bool label_sets_ = false;           // that label holds 0 or 1 per class
  std::map<size_t, int64_t> filled_;  // missing numbers by column
  std::vector<size_t> dropped_;       // rows
  std::string first_dropped_;
};

}  // namespace

std::unique_ptr<Source> NewCsvSource(const CsvParam& param) {
  return std::make_unique<CsvSource>(param);
}

MXTRAIN_SOURCE(csv_source, sources) {
  SourceKind csv =
      SourceKindOf<CsvParam, NewCsvSource>("csv", "numbers and image paths in text files");
  csv.is_table = true;
  // Without label_delim each label of words has names of its own, in field_classes.
  csv.names_classes = [](const Kwargs& kwargs) {
    return std::any_of(kwargs.begin(), kwargs.end(), [](const auto& param) {
      return param.first == "label_delim" && !param.second.empty();
    });
  };
  sources.Add(std::move(csv));
}

}  // namespace mxtrain::io
