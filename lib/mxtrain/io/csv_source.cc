#include "mxtrain/io/csv_source.h"

#include <algorithm>
#include <charconv>

#include "mxtrain/base/file.h"
#include "mxtrain/base/suggest.h"

namespace mxtrain::io {
namespace {

// A file of numbers: rows of equal length.
struct Table {
  std::string file;
  std::vector<std::string> header;  // empty: none
  std::vector<float> cells;
  std::vector<int64_t> lines;  // in the file, of each row
  size_t columns = 0;

  size_t rows() const { return lines.size(); }
};

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r";
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

bool ParseNumber(std::string_view text, float* value) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return status == std::errc() && end == text.data() + text.size();
}

std::vector<std::string_view> SplitLine(std::string_view line) {
  std::vector<std::string_view> cells;
  for (size_t begin = 0;;) {
    const size_t comma = line.find(',', begin);
    cells.push_back(Trim(line.substr(begin, comma - begin)));
    if (comma == std::string_view::npos) return cells;
    begin = comma + 1;
  }
}

void AddRow(const std::vector<std::string_view>& cells, int64_t line, Table* table) {
  if (table->columns == 0) table->columns = cells.size();
  if (cells.size() != table->columns) {
    Throw(ErrorKind::kData, "{}:{}: {} columns, but the lines before have {}", table->file, line, cells.size(), table->columns);
  }
  for (size_t i = 0; i < cells.size(); ++i) {
    float value = 0;
    if (!ParseNumber(cells[i], &value)) {
      Throw(ErrorKind::kData, "{}:{}: column {}: '{}' is not a number", table->file, line, i + 1, cells[i].substr(0, 40));
    }
    table->cells.push_back(value);
  }
  table->lines.push_back(line);
}

Table ReadTable(const std::string& path) {
  Table table;
  table.file = path;
  const std::string text = ReadMaybeGzip(path, size_t{16} << 30);
  std::string_view rest = text;
  if (rest.starts_with("\xef\xbb\xbf")) rest.remove_prefix(3);  // byte order mark
  for (int64_t line = 1; !rest.empty(); ++line) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view content = Trim(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (content.empty()) continue;
    const std::vector<std::string_view> cells = SplitLine(content);
    float ignored = 0;
    if (table.columns == 0 && !ParseNumber(cells[0], &ignored)) {
      table.header.assign(cells.begin(), cells.end());
      table.columns = cells.size();
    } else {
      AddRow(cells, line, &table);
    }
  }
  if (table.rows() == 0) Throw(ErrorKind::kData, "{} holds no line of numbers", path);
  return table;
}

size_t FindColumn(const Table& table, const std::string& wanted) {
  const auto named = std::find(table.header.begin(), table.header.end(), wanted);
  if (named != table.header.end()) return static_cast<size_t>(named - table.header.begin());
  size_t number = 0;
  const auto [end, status] = std::from_chars(wanted.data(), wanted.data() + wanted.size(), number);
  if (status == std::errc() && end == wanted.data() + wanted.size() && number < table.columns) return number;
  Throw(ErrorKind::kConfig, "csv: {} has no column '{}'; it has {} columns, {}{}", table.file, wanted, table.columns,
        table.header.empty() ? "without names: give their numbers, from 0" : format("named {}", join(table.header, ", ")),
        DidYouMean(wanted, table.header));
}

// Splits off the columns that are labels, in the order given.
Table TakeColumns(const std::vector<std::string>& wanted, Table* table) {
  std::vector<size_t> chosen;
  for (const std::string& name : wanted) {
    chosen.push_back(FindColumn(*table, name));
    if (std::count(chosen.begin(), chosen.end(), chosen.back()) > 1) Throw(ErrorKind::kConfig, "csv: label_columns names '{}' twice", name);
  }
  if (chosen.size() == table->columns) Throw(ErrorKind::kConfig, "csv: {} has only label columns, no data", table->file);
  Table labels{table->file, {}, {}, table->lines, chosen.size()};
  std::vector<float> data;
  for (size_t row = 0; row < table->rows(); ++row) {
    const float* cells = table->cells.data() + row * table->columns;
    for (const size_t column : chosen) labels.cells.push_back(cells[column]);
    for (size_t column = 0; column < table->columns; ++column) {
      if (std::find(chosen.begin(), chosen.end(), column) == chosen.end()) data.push_back(cells[column]);
    }
  }
  table->cells = std::move(data);
  table->columns -= chosen.size();
  return labels;
}

TShape ShapeOf(const Table& table, const TShape& wanted, const char* parameter, bool scalar) {
  const auto columns = static_cast<int64_t>(table.columns);
  if (!wanted.has_rank()) return scalar && columns == 1 ? TShape(std::span<const int64_t>{}) : TShape{columns};
  if (!wanted.known() || wanted.Size() != columns) {
    Throw(ErrorKind::kData, "csv: {} = {} needs {} columns, {} has {}", parameter, wanted.ToString(), wanted.known() ? wanted.Size() : -1,
          table.file, columns);
  }
  return wanted;
}

class CsvSource final : public Source {
 public:
  explicit CsvSource(const CsvParam& param) {
    if (param.path.empty() == param.data_csv.empty()) Throw(ErrorKind::kConfig, "csv needs either 'path' or 'data_csv'");
    if (!param.path.empty() && !param.label_csv.empty())
      Throw(ErrorKind::kConfig, "csv: 'label_csv' goes with 'data_csv', not with 'path'");
    if (param.path.empty() && !param.label_columns.empty()) Throw(ErrorKind::kConfig, "csv: 'label_columns' goes with 'path'");
    data_ = ReadTable(param.path.empty() ? param.data_csv : param.path);
    if (!param.label_csv.empty()) labels_ = ReadTable(param.label_csv);
    if (!param.label_columns.empty()) labels_ = TakeColumns(param.label_columns, &data_);
    if (labels_.rows() != 0 && labels_.rows() != data_.rows()) {
      Throw(ErrorKind::kData, "{} holds {} lines, but {} holds {} labels", data_.file, data_.rows(), labels_.file, labels_.rows());
    }
    data_fields_ = {{"data", FieldKind::kValues, ShapeOf(data_, param.data_shape, "data_shape", false)}};
    if (labels_.rows() != 0) label_fields_ = {{"label", FieldKind::kValues, ShapeOf(labels_, param.label_shape, "label_shape", true)}};
    if (labels_.rows() == 0 && param.label_shape.has_rank()) Throw(ErrorKind::kConfig, "csv: 'label_shape' is given, but no labels");
  }

  int64_t size() const override { return static_cast<int64_t>(data_.rows()); }
  const std::vector<FieldSpec>& data_fields() const override { return data_fields_; }
  const std::vector<FieldSpec>& label_fields() const override { return label_fields_; }
  void Read(int64_t index, Sample* sample) const override {
    const auto row = static_cast<size_t>(index);
    sample->data.resize(1);
    sample->labels.resize(label_fields_.size());
    sample->data[0].values = {data_.cells.data() + row * data_.columns, data_.columns};
    if (!label_fields_.empty()) sample->labels[0].values = {labels_.cells.data() + row * labels_.columns, labels_.columns};
  }
  std::string Name(int64_t index) const override { return format("{}:{}", data_.file, data_.lines[static_cast<size_t>(index)]); }
  std::optional<int> ClassOf(int64_t) const override { return std::nullopt; }
  const std::vector<std::string>& class_names() const override { return class_names_; }

 private:
  Table data_, labels_;
  std::vector<FieldSpec> data_fields_, label_fields_;
  std::vector<std::string> class_names_;  // none: numbers alone do not say whether they are classes
};

}  // namespace

std::unique_ptr<Source> NewCsvSource(const CsvParam& param) {
  return std::make_unique<CsvSource>(param);
}

}  // namespace mxtrain::io
