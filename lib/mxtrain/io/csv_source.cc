// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/csv_source.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>

#include "mxtrain/base/suggest.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/internal/header_line.h"
#include "mxtrain/io/internal/image_files.h"
#include "mxtrain/io/internal/table_text.h"
#include "mxtrain/io/internal/text_columns.h"
#include "mxtrain/io/list_line.h"

namespace mxtrain::io {
namespace {

constexpr std::string_view kBlanksInQuotes = " \t\r\n";
constexpr size_t kNamesListed = 50, kNamesTold = 8;  // of columns, in messages
// Rounding errors, in standard deviations or ranges of a column: from which numbers are
// standardized in double, and from which a column that is not standardized is told of.
constexpr double kBlurStandardized = 1.0 / (1 << 16), kBlurTold = 1.0 / (1 << 10);
constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();

// A field with the values given for it: the columns of "left=a", "left=b".
struct NamedField {
  std::string name;
  std::vector<std::string> values;
};

std::vector<NamedField> GroupByField(const std::vector<std::string>& items, const char* parameter) {
  std::vector<NamedField> fields;
  for (const std::string& item : items) {
    const size_t equals = item.find('=');
    if (equals == std::string::npos || equals == 0)
      Throw(ErrorKind::kConfig, "csv: {} has '{}'; expected FIELD=VALUE", parameter, item);
    const std::string name(Trim(std::string_view(item).substr(0, equals), kBlanks));
    const auto found = std::find_if(fields.begin(), fields.end(),
                                    [&](const NamedField& f) { return f.name == name; });
    NamedField& field = found == fields.end() ? fields.emplace_back(NamedField{name, {}}) : *found;
    field.values.emplace_back(Trim(std::string_view(item).substr(equals + 1), kBlanks));
  }
  return fields;
}

// The values of a field; none if it is not named.
std::vector<std::string> ValuesOf(const std::vector<std::string>& items, const char* parameter,
                                  const std::string& name) {
  for (NamedField& field : GroupByField(items, parameter)) {
    if (field.name == name) return std::move(field.values);
  }
  return {};
}

std::vector<double> NumbersOf(const std::vector<std::string>& items, const char* parameter,
                              const std::string& name, size_t columns) {
  std::vector<double> numbers;
  for (const std::string& text : ValuesOf(items, parameter, name))
    params::Parse(text, &numbers.emplace_back());
  if (numbers.empty() || numbers.size() == columns) return numbers;
  Throw(ErrorKind::kConfig, "csv: {} has {} numbers for the {} columns of '{}'", parameter,
        numbers.size(), columns, name);
}

// What rounding to float32 took from the number in a cell, itself rounded to float32: none of
// numbers with so few digits that float32 gives them back.
float RestOf(std::string_view cell, float value) {
  constexpr auto kDigits = std::numeric_limits<float>::digits10;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  double exact = 0;
  if (std::count_if(cell.begin(), cell.end(), is_digit) <= kDigits || !ParseNumber(cell, &exact))
    return 0;
  return static_cast<float>(exact - static_cast<double>(value));
}

// Whether numbers of this size that differ by `spread` cannot be told apart well in float32.
bool Blurs(double size, double spread, double tolerance) {
  return std::abs(size) * std::numeric_limits<float>::epsilon() > spread * tolerance;
}

constexpr const char* kSeparatedByBlanks =
    "; if blanks separate the columns, set delimiter: blanks, and give every line as many cells";
constexpr const char* kNamesColumns =
    "; if this line holds the names of the columns, give the columns by these names";

bool HoldsBlanks(std::string_view cell) {
  return cell.find_first_of(" \t") != std::string_view::npos;
}

// The structure of a file: column names and the lines of its rows.
struct Sheet {
  std::string file, delimiter;
  std::vector<std::string> header;  // empty: none
  size_t columns = 0;
  bool first_holds_blanks = false;      // the first cell
  std::vector<int64_t> lines, numbers;  // of each row: in the file, and among the rows, from 1

  std::string ColumnName(size_t column) const {
    return column < header.size() ? format("column '{}'", Shortened(header[column]))
                                  : format("column {} (counted from 0)", column);
  }
  std::string Place(int64_t line, size_t column) const {
    return format("{}:{}: {}", file, line, ColumnName(column));
  }
  [[noreturn]] void ThrowNoNumber(int64_t line, size_t column, std::string_view cell) const {
    const bool comma = cell.find(',') != std::string_view::npos;
    if (IsOutOfRange(cell)) {
      const bool small =
          cell.find("e-") != std::string_view::npos || cell.find("E-") != std::string_view::npos;
      Throw(ErrorKind::kData, "{}: '{}' is too {} for float32; {}", Place(line, column),
            Shortened(cell), small ? "small" : "large", small ? "write 0" : "scale the column");
    }
    const char* advice = comma                               ? "; decimals are written with a point"
                         : columns == 1 && HoldsBlanks(cell) ? kSeparatedByBlanks
                         : header.empty() && line == lines[0] ? kNamesColumns
                                                              : "";
    Throw(ErrorKind::kData, "{}: '{}' is not a number{}", Place(line, column), Shortened(cell),
          advice);
  }
  // The header, for a message.
  std::string Names(size_t most) const {
    std::vector<std::string> names;
    for (const std::string& name : header) names.push_back(Shortened(name));
    return FirstOf(std::move(names), most);
  }
  size_t Find(const std::string& wanted) const {
    const auto named = std::find(header.begin(), header.end(), wanted);
    if (named != header.end()) {
      const auto again = std::find(named + 1, header.end(), wanted);
      if (again != header.end()) {
        Throw(ErrorKind::kData,
              "csv: {} has two columns '{}': {} and {}, counted from 0; rename one of them in the "
              "first line",
              file, wanted, named - header.begin(), again - header.begin());
      }
      return static_cast<size_t>(named - header.begin());
    }
    size_t number = 0;
    const auto [end, status] =
        std::from_chars(wanted.data(), wanted.data() + wanted.size(), number);
    if (status == std::errc() && end == wanted.data() + wanted.size() && number < columns)
      return number;
    const std::string one = columns == 1
                                ? format("; its cells are taken to be separated by {}{}", delimiter,
                                         first_holds_blanks ? kSeparatedByBlanks : "")
                                : "";
    const bool is_text = std::all_of(header.begin(), header.end(),
                                     [](const std::string& name) { return IsUtf8(name); });
    Throw(ErrorKind::kConfig, "csv: {} has no column '{}'; it has {}, {}{}{}", file, wanted,
          Counted(columns, "column"),
          header.empty() ? "without names: give their numbers, from 0"
                         : "named " + Names(kNamesListed),
          DidYouMean(wanted, header), is_text ? one : "; the file is not UTF-8: save it as UTF-8");
  }
};

// The columns of one field and their contents: numbers, or text if `words`.
struct Field {
  std::string name;
  std::vector<size_t> columns = {};
  bool label = false, words = false;
  std::vector<std::string_view> cells = {};  // if words: one per row
  size_t width = 0;                          // numbers per row
  std::vector<float> numbers = {};
  std::vector<float> rests = {};  // what float32 took from each number; empty: nothing
  std::vector<std::string> paths = {}, classes = {};
};

class CsvSource final : public Source {
 public:
  explicit CsvSource(const CsvParam& param) : param_(param) {
    CheckParam();
    TableText text(param.path.empty() ? param.data_csv : param.path, param.delimiter);
    ReadTable(&text, &sheet_, [this] { PlanFields(); });
    const size_t rows = sheet_.lines.size();
    for (Field& field : fields_) FinishWords(&field);
    if (!param.label_csv.empty()) ReadLabels(rows);
    DropRows();
    for (Field& field : fields_) FillAndStandardize(&field);
    for (Field& field : fields_) DropSmallRests(&field);
    for (const Field& field : fields_) {
      if (!field.classes.empty() && !label_sets_) AddFound(field);
    }
    SayMissing();
  }

  int64_t size() const override { return static_cast<int64_t>(sheet_.lines.size()); }
  const std::vector<FieldSpec>& data_fields() const override { return data_fields_; }
  const std::vector<FieldSpec>& label_fields() const override { return label_fields_; }
  void Read(int64_t index, Sample* sample) const override {
    sample->data.resize(data_fields_.size());
    sample->labels.resize(label_fields_.size());
    size_t data = 0, labels = 0;
    const auto row = static_cast<size_t>(index);
    for (const Field& field : fields_) {
      FieldValue& value = field.label ? sample->labels[labels++] : sample->data[data++];
      if (field.paths.empty()) {
        value.values = {field.numbers.data() + row * field.width, field.width};
      } else {
        value.encoded = ReadImageFile(field.paths[row]);
      }
    }
  }
  std::span<const float> Rests(int64_t index, bool label, size_t position) const override {
    for (const Field& field : fields_) {
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
  std::string FileOf(int64_t index) const override {
    const auto images = [](const Field& field) { return !field.paths.empty(); };
    if (std::count_if(fields_.begin(), fields_.end(), images) != 1) return "";
    return std::find_if(fields_.begin(), fields_.end(), images)->paths[static_cast<size_t>(index)];
  }
  std::optional<int> ClassOf(int64_t index) const override {
    const auto named = std::find_if(fields_.begin(), fields_.end(),
                                    [](const Field& field) { return !field.classes.empty(); });
    if (named == fields_.end() || label_sets_) return std::nullopt;
    return static_cast<int>(named->numbers[static_cast<size_t>(index)]);
  }
  const std::vector<std::string>& class_names() const override { return class_names_; }

 private:
  bool named() const { return !param_.data_fields.empty() || !param_.label_fields.empty(); }

  void CheckParam() const {
    const CsvParam& param = param_;
    if (param.path.empty() == param.data_csv.empty())
      Throw(ErrorKind::kConfig, "csv needs either 'path' or 'data_csv'");
    if (!param.path.empty() && !param.label_csv.empty())
      Throw(ErrorKind::kConfig, "csv: 'label_csv' goes with 'data_csv', not with 'path'");
    if (param.path.empty() && (!param.label_columns.empty() || named())) {
      Throw(ErrorKind::kConfig, "csv: '{}' goes with 'path'",
            named() ? "data_fields" : "label_columns");
    }
    if (!named() && !param.field_shapes.empty())
      Throw(ErrorKind::kConfig, "csv: 'field_shapes' go with 'data_fields'");
    if (!named() && !(param.picture_fields.empty() && param.root.empty() && param.classes.empty() &&
                      param.label_delim.empty())) {
      Throw(ErrorKind::kConfig,
            "csv: 'picture_fields', 'root', 'classes' and 'label_delim' go with 'data_fields'");
    }
    if (named() && (!param.label_columns.empty() || param.data_shape.has_rank() ||
                    param.label_shape.has_rank())) {
      Throw(
          ErrorKind::kConfig,
          "csv: 'data_fields' takes the place of 'label_columns', 'data_shape' and 'label_shape'");
    }
    if (!named() && param.label_shape.has_rank() && param.label_csv.empty() &&
        param.label_columns.empty()) {
      Throw(ErrorKind::kConfig, "csv: 'label_shape' is given, but no labels");
    }
  }

  // Whether a column is requested by name: then the first line is the header.
  bool NamesColumns() const {
    const auto is_name = [](const std::string& item) {
      const size_t equals = item.find('=');  // before the first character, if there is none
      return item.find_first_not_of("0123456789", equals + 1) != std::string::npos;
    };
    return std::any_of(param_.data_fields.begin(), param_.data_fields.end(), is_name) ||
           std::any_of(param_.label_fields.begin(), param_.label_fields.end(), is_name) ||
           std::any_of(param_.label_columns.begin(), param_.label_columns.end(), is_name);
  }

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
      Throw(ErrorKind::kData, "{} holds no line of {}{}", sheet->file, named() ? "data" : "numbers",
            sheet->header.empty() ? "" : format(" below line {}, the header", lines[0]));
    }
  }

  // Takes the first record as the header, or not, and says which; true if so.
  bool TellFirstLine(const std::vector<std::vector<std::string_view>>& records, int64_t line,
                     Sheet* sheet) {
    const FirstLine verdict = NamesColumns() ? FirstLine{.header = true} : JudgeFirstLine(records);
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
    AddKernel(*sheet, cells);
  }

  // Fields of the columns named by the parameters, or of all columns.
  void PlanFields() {
    if (!param_.key.empty() &&
        (param_.key != "#" || std::count(sheet_.header.begin(), sheet_.header.end(), "#") > 0)) {
      key_column_ = sheet_.Find(param_.key);
    }
    if (!named()) return PlanAllColumns();
    for (const bool label : {false, true}) {
      const char* parameter = label ? "label_fields" : "data_fields";
      for (const NamedField& given :
           GroupByField(label ? param_.label_fields : param_.data_fields, parameter)) {
        Field& field = fields_.emplace_back(Field{.name = given.name, .label = label});
        for (const std::string& column : given.values) field.columns.push_back(sheet_.Find(column));
        const bool is_image = !label && std::count(param_.picture_fields.begin(),
                                                   param_.picture_fields.end(), given.name) > 0;
        if (is_image && field.columns.size() != 1) {
          Throw(ErrorKind::kConfig, "csv: the images '{}' need one column of paths, not {}",
                field.name, field.columns.size());
        }
        field.words = is_image || (label && field.columns.size() == 1);
        field.width = field.columns.size();
        if (is_image) {
          data_fields_.push_back({field.name, FieldKind::kImage, TShape()});
        } else {
          AddSpec(field, WantedShape(field.name), field.name.c_str());
        }
      }
    }
    for (const std::string& name : param_.picture_fields) {
      const bool known = std::any_of(fields_.begin(), fields_.end(), [&](const Field& field) {
        return !field.label && field.name == name;
      });
      if (!known)
        Throw(ErrorKind::kConfig, "csv: picture_fields names '{}', which is not in data_fields",
              name);
    }
    CheckLabelDelim();
    TellRepeatedNames();
  }

  // `Find` refuses such a name if it is asked for.
  void TellRepeatedNames() {
    std::vector<std::string> names = sheet_.header, repeated;
    std::sort(names.begin(), names.end());
    for (size_t i = 1; i < names.size(); ++i) {
      const bool known = !repeated.empty() && repeated.back() == names[i];
      if (names[i] == names[i - 1] && !names[i].empty() && !known) repeated.push_back(names[i]);
    }
    if (repeated.empty()) return;
    for (std::string& name : repeated) name = Shortened(name);
    warnings_.push_back(
        format("{}: several columns have the same name: {}", sheet_.file, FirstOf(repeated, 8)));
  }

  void PlanAllColumns() {
    Field data{.name = "data"}, label{.name = "label", .label = true};
    for (const std::string& name : param_.label_columns) {
      label.columns.push_back(sheet_.Find(name));
      if (std::count(label.columns.begin(), label.columns.end(), label.columns.back()) > 1)
        Throw(ErrorKind::kConfig, "csv: label_columns names '{}' twice", name);
    }
    if (label.columns.size() == sheet_.columns)
      Throw(ErrorKind::kConfig, "csv: {} has only label columns, no data", sheet_.file);
    for (size_t column = 0; column < sheet_.columns; ++column) {
      if (std::count(label.columns.begin(), label.columns.end(), column) == 0)
        data.columns.push_back(column);
    }
    for (Field* field : {&data, &label}) {
      field->width = field->columns.size();
      if (field->width == 0) continue;
      AddSpec(*field, field->label ? param_.label_shape : param_.data_shape,
              field->label ? "label_shape" : "data_shape");
      fields_.push_back(std::move(*field));
    }
  }

  void AddSpec(const Field& field, const TShape& wanted, const char* parameter) {
    const auto columns = static_cast<int64_t>(field.width);
    TShape shape = wanted;
    if (!wanted.has_rank())
      shape = field.label && columns == 1 ? TShape(std::span<const int64_t>{}) : TShape{columns};
    if (!shape.known() || shape.Size() != columns) {
      Throw(ErrorKind::kData, "csv: {} = {} needs {}, {} has {}", parameter, wanted.ToString(),
            Counted(wanted.known() ? wanted.Size() : -1, "column"), sheet_.file, columns);
    }
    (field.label ? label_fields_ : data_fields_).push_back({field.name, FieldKind::kValues, shape});
  }

  TShape WantedShape(const std::string& name) const {
    const std::vector<std::string> given = ValuesOf(param_.field_shapes, "field_shapes", name);
    if (given.empty()) return {};
    std::string text = given[0];
    std::replace(text.begin(), text.end(), 'x', ',');
    return TShape::Parse(format("({},)", text));
  }

  void CheckLabelDelim() {
    label_sets_ = !param_.label_delim.empty();
    const bool one_column = std::any_of(fields_.begin(), fields_.end(), [](const Field& field) {
      return field.label && field.width == 1;
    });
    const bool any_label =
        std::any_of(fields_.begin(), fields_.end(), [](const Field& field) { return field.label; });
    if (label_sets_ && any_label && !one_column)
      Throw(ErrorKind::kConfig, "csv: label_delim = '{}' needs a label of one column",
            param_.label_delim);
  }

  void AddKernel(const Sheet& sheet, const std::vector<std::string_view>& cells) {
    if (&sheet == &sheet_ && key_column_) keys_.emplace_back(cells[*key_column_]);
    for (Field& field : fields_) {
      if ((&sheet == &sheet_) == of_label_file(field)) continue;
      if (field.words) {
        const std::string_view cell = cells[field.columns[0]];
        // Blanks in quotes are part of a path, but not of a class.
        field.cells.push_back(field.label ? Trim(cell, kBlanksInQuotes) : cell);
        continue;
      }
      for (const size_t column : field.columns)
        AddNumber(sheet, sheet.lines.size() - 1, column, cells[column], &field);
    }
  }
  void AddNumber(const Sheet& sheet, size_t row, size_t column, std::string_view cell,
                 Field* field) {
    cell = Trim(cell, kBlanksInQuotes);
    const float value = NumberIn(sheet, *field, row, column, cell);
    const float rest = std::isnan(value) ? 0 : RestOf(cell, value);
    if (rest != 0) field->rests.resize(field->numbers.size());
    field->numbers.push_back(value);
    if (rest != 0 || !field->rests.empty()) field->rests.push_back(rest);
  }
  bool of_label_file(const Field& field) const { return field.label && !param_.label_csv.empty(); }

  // NaN if missing, which is recorded.
  float NumberIn(const Sheet& sheet, const Field& field, size_t row, size_t column,
                 std::string_view cell) {
    float value = 0;
    if (IsMissing(cell)) {
      NoteMissing(sheet, field, row, column, cell);
      return kMissing;
    }
    if (!ParseNumber(cell, &value)) sheet.ThrowNoNumber(sheet.lines[row], column, cell);
    if (!std::isfinite(value))
      Throw(ErrorKind::kData, "{}: '{}' is not a finite number",
            sheet.Place(sheet.lines[row], column), Shortened(cell));
    return value;
  }

  void NoteMissing(const Sheet& sheet, const Field& field, size_t row, size_t column,
                   std::string_view cell) {
    if (param_.missing == CsvParam::kError && !field.label && field.words) {
      Throw(ErrorKind::kData, "{}: the path is empty; missing: drop skips such rows",
            sheet.Place(sheet.lines[row], column));
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
  void FinishWords(Field* field) {
    if (!field->words) return;
    if (!field->label) {
      MakePaths(field);
    } else if (label_sets_ && class_names_.empty()) {
      NumberLabelSets(field);
    } else if (const std::vector<std::string> given = GivenClasses(*field);
               !given.empty() || HoldsWords(*field)) {
      NumberLabels(field, given);
    } else {
      for (size_t row = 0; row < field->cells.size(); ++row)
        AddNumber(sheet_, row, field->columns[0], field->cells[row], field);
    }
    field->cells = {};
  }

  void MakePaths(Field* field) {
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

  std::vector<std::string> GivenClasses(const Field& field) const {
    std::vector<std::string> own = ValuesOf(param_.field_classes, "field_classes", field.name);
    return own.empty() && class_names_.empty() ? param_.classes : own;
  }

  // A column of numbers with a typo is not a column of classes.
  bool HoldsWords(const Field& field) const {
    float ignored = 0;
    size_t words = 0, numbers = 0, first = 0;
    for (size_t row = 0; row < field.cells.size(); ++row) {
      if (IsMissing(field.cells[row])) continue;
      const bool number = ParseNumber(field.cells[row], &ignored);
      if (!number && words == 0) first = row;
      ++(number ? numbers : words);
    }
    if (words > 0 && numbers > words)
      sheet_.ThrowNoNumber(sheet_.lines[first], field.columns[0], field.cells[first]);
    return words > 0;
  }

  void NumberLabels(Field* field, const std::vector<std::string>& given) {
    std::vector<std::string> words;
    std::vector<size_t> rows;
    for (size_t row = 0; row < field->cells.size(); ++row) {
      if (field->cells[row].empty()) {
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

  void NumberLabelSets(Field* field) {
    const std::vector<std::string> words(field->cells.begin(), field->cells.end());
    ClassLabels sets = NumberClassSets(words, param_.label_delim, param_.classes, [&](size_t row) {
      return format("{}:{}", sheet_.file, sheet_.lines[row]);
    });
    field->numbers = std::move(sets.labels);
    field->width = sets.classes.size();
    field->classes = sets.classes;
    class_names_ = std::move(sets.classes);
    const auto spec = std::find_if(label_fields_.begin(), label_fields_.end(),
                                   [&](const FieldSpec& s) { return s.name == field->name; });
    spec->shape = TShape{static_cast<int64_t>(field->width)};
  }

  // label_csv: a separate file.
  void ReadLabels(size_t rows) {
    TableText text(param_.label_csv, param_.delimiter);
    Sheet sheet;
    Field label{.name = "label", .label = true};
    ReadTable(&text, &sheet, [&] {
      for (size_t column = 0; column < sheet.columns; ++column) label.columns.push_back(column);
      label.width = sheet.columns;
      AddSpec(label, param_.label_shape, "label_shape");
      fields_.push_back(label);
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
    DropFrom(&sheet_.lines, 1);
    DropFrom(&sheet_.numbers, 1);
    DropFrom(&keys_, 1);
    for (Field& field : fields_) {
      DropFrom(&field.numbers, field.width);
      DropFrom(&field.rests, field.width);
      DropFrom(&field.paths, 1);
    }
  }
  template <typename T>
  void DropFrom(std::vector<T>* items, size_t width) const {
    if (items->empty()) return;
    size_t kept = 0;
    auto next = dropped_.begin();
    for (size_t row = 0; row * width < items->size(); ++row) {
      if (next != dropped_.end() && *next == row) {
        ++next;
        continue;
      }
      if (kept != row)
        std::move(items->begin() + static_cast<ptrdiff_t>(row * width),
                  items->begin() + static_cast<ptrdiff_t>((row + 1) * width),
                  items->begin() + static_cast<ptrdiff_t>(kept * width));
      ++kept;
    }
    items->resize(kept * width);
  }

  void FillAndStandardize(Field* field) {
    const std::vector<double> means =
        NumbersOf(param_.field_means, "field_means", field->name, field->columns.size());
    const std::vector<double> stds =
        NumbersOf(param_.field_stds, "field_stds", field->name, field->columns.size());
    if (!stds.empty() && means.empty())
      Throw(ErrorKind::kConfig, "csv: '{}' has field_stds, but no field_means", field->name);
    if (means.empty() || !field->classes.empty() || !field->paths.empty()) return;
    for (size_t i = 0; i < field->numbers.size(); ++i) {
      const size_t k = i % field->width;
      double value =
          std::isnan(field->numbers[i]) ? means[k] : static_cast<double>(field->numbers[i]);
      if (!stds.empty() && !field->rests.empty() && Blurs(means[k], stds[k], kBlurStandardized))
        value += static_cast<double>(field->rests[i]);
      field->numbers[i] = static_cast<float>(stds.empty() ? value : (value - means[k]) / stds[k]);
    }
    if (stds.empty()) return;
    field->rests = {};
    std::vector<FieldSpec>& specs = field->label ? label_fields_ : data_fields_;
    std::find_if(specs.begin(), specs.end(), [&](const FieldSpec& spec) {
      return spec.name == field->name;
    })->units = {means, stds};
  }

  // Rests cost memory: only a field with a column that float32 blurs keeps them, to be measured and
  // standardized; used as they are, its numbers lose digits, which is told.
  void DropSmallRests(Field* field) {
    std::vector<std::string> blurred;
    bool any = false;
    for (size_t k = 0; k < field->columns.size() && !field->rests.empty(); ++k) {
      double least = std::numeric_limits<double>::infinity(), most = -least;
      for (size_t i = k; i < field->numbers.size(); i += field->width) {
        if (std::isnan(field->numbers[i])) continue;
        const double value = double{field->numbers[i]} + double{field->rests[i]};
        least = std::min(least, value);
        most = std::max(most, value);
      }
      const double size = std::max(std::abs(least), std::abs(most));
      any = any || Blurs(size, most - least, kBlurStandardized);
      if (Blurs(size, most - least, kBlurTold))
        blurred.push_back(sheet_.ColumnName(field->columns[k]));
    }
    if (!any) field->rests = {};
    if (blurred.empty()) return;
    warnings_.push_back(
        format("{}: numbers of {} lose digits in float32, which holds about seven; normalize: auto "
               "standardizes them before they are rounded",
               sheet_.file, FirstOf(blurred, 8)));
  }

  void AddFound(const Field& field) {
    std::vector<std::string> items;
    if (!found_.empty()) params::Parse(found_[0].second, &items);
    for (const std::string& name : field.classes)
      items.push_back(format("{}={}", field.name, name));
    found_ = {{"field_classes", params::Print(items)}};
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
  std::vector<Field> fields_;  // data, then labels, in the order of the specs
  std::vector<FieldSpec> data_fields_, label_fields_;
  std::optional<size_t> key_column_;
  std::vector<std::string> keys_;
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

}  // namespace mxtrain::io
