#include "mxtrain/io/csv_source.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "mxtrain/base/file.h"
#include "mxtrain/base/suggest.h"
#include "mxtrain/io/picture_files.h"
#include "mxtrain/io/text_columns.h"

namespace mxtrain::io {
namespace {

// A file of numbers: rows of equal length.
struct Table {
  std::string file;
  std::vector<std::string> header;  // empty: none
  std::vector<float> cells;
  std::vector<int64_t> lines;  // in the file, of each row
  size_t columns = 0;
  std::vector<std::string> words = {};  // the cells as they are written, where some are no numbers; else empty

  size_t rows() const { return lines.size(); }
};

[[noreturn]] void ThrowNoNumber(const std::string& file, int64_t line, size_t column, std::string_view cell) {
  Throw(ErrorKind::kData, "{}:{}: column {}: '{}' is not a number", file, line, column + 1, cell.substr(0, 40));
}

void AddRow(const std::vector<std::string_view>& cells, int64_t line, bool keep_words, Table* table) {
  if (table->columns == 0) table->columns = cells.size();
  if (cells.size() != table->columns) {
    Throw(ErrorKind::kData, "{}:{}: {} columns, but the lines before have {}", table->file, line, cells.size(), table->columns);
  }
  for (size_t i = 0; i < cells.size(); ++i) {
    float value = 0;
    if (!ParseNumber(cells[i], &value) && !keep_words) ThrowNoNumber(table->file, line, i, cells[i]);
    table->cells.push_back(value);
    if (keep_words) table->words.emplace_back(cells[i]);
  }
  table->lines.push_back(line);
}

// `words`: cells may be other than numbers; then the first line is a header when `header` says so.
Table ReadTable(const std::string& path, bool words = false, bool header = false) {
  Table table;
  table.file = path;
  ForEachLine(ReadMaybeGzip(path, size_t{16} << 30, Readable::kFileOrPipe), [&](std::string_view line, int64_t number) {
    const std::vector<std::string_view> cells = SplitCells(line, ',');
    float ignored = 0;
    if (table.columns == 0 && (words ? header : !ParseNumber(cells[0], &ignored))) {
      table.header.assign(cells.begin(), cells.end());
      table.columns = cells.size();
    } else {
      AddRow(cells, number, words, &table);
    }
  });
  if (table.rows() == 0) Throw(ErrorKind::kData, "{} holds no line of {}", path, words ? "data" : "numbers");
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

// The columns of `table` with these numbers, in this order.
Table Select(const Table& table, const std::vector<size_t>& chosen) {
  Table part{table.file, {}, {}, table.lines, chosen.size()};
  part.cells.reserve(table.rows() * chosen.size());
  for (size_t row = 0; row < table.rows(); ++row) {
    for (const size_t column : chosen) {
      part.cells.push_back(table.cells[row * table.columns + column]);
      if (!table.words.empty()) part.words.push_back(table.words[row * table.columns + column]);
    }
  }
  return part;
}

// Splits off the columns that are labels, in the order given.
Table TakeColumns(const std::vector<std::string>& wanted, Table* table) {
  std::vector<size_t> chosen, others;
  for (const std::string& name : wanted) {
    chosen.push_back(FindColumn(*table, name));
    if (std::count(chosen.begin(), chosen.end(), chosen.back()) > 1) Throw(ErrorKind::kConfig, "csv: label_columns names '{}' twice", name);
  }
  if (chosen.size() == table->columns) Throw(ErrorKind::kConfig, "csv: {} has only label columns, no data", table->file);
  for (size_t column = 0; column < table->columns; ++column) {
    if (std::find(chosen.begin(), chosen.end(), column) == chosen.end()) others.push_back(column);
  }
  Table labels = Select(*table, chosen);
  *table = Select(*table, others);
  return labels;
}

// A field by name with what was given for it: the columns of "left=a", "left=b".
struct NamedField {
  std::string name;
  std::vector<std::string> values;
};

std::vector<NamedField> GroupByField(const std::vector<std::string>& items, const char* parameter) {
  std::vector<NamedField> fields;
  for (const std::string& item : items) {
    const size_t equals = item.find('=');
    if (equals == std::string::npos || equals == 0) Throw(ErrorKind::kConfig, "csv: {} has '{}'; expected FIELD=VALUE", parameter, item);
    const std::string name(Trim(std::string_view(item).substr(0, equals)));
    const auto found = std::find_if(fields.begin(), fields.end(), [&](const NamedField& f) { return f.name == name; });
    NamedField& field = found == fields.end() ? fields.emplace_back(NamedField{name, {}}) : *found;
    field.values.emplace_back(Trim(std::string_view(item).substr(equals + 1)));
  }
  return fields;
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
    CheckParam(param);
    Table all = ReadTable(param.path.empty() ? param.data_csv : param.path, !param.picture_fields.empty() || !param.label_delim.empty(),
                          NamesColumns(param));
    if (!param.data_fields.empty()) {
      NameFields(all, param);
      return;
    }
    Table labels;
    if (!param.label_csv.empty()) labels = ReadTable(param.label_csv);
    if (!param.label_columns.empty()) labels = TakeColumns(param.label_columns, &all);
    if (labels.rows() != 0 && labels.rows() != all.rows()) {
      Throw(ErrorKind::kData, "{} holds {} lines, but {} holds {} labels", all.file, all.rows(), labels.file, labels.rows());
    }
    data_fields_ = {{"data", FieldKind::kValues, ShapeOf(all, param.data_shape, "data_shape", false)}};
    data_.push_back(std::move(all));
    if (labels.rows() == 0) return;
    label_fields_ = {{"label", FieldKind::kValues, ShapeOf(labels, param.label_shape, "label_shape", true)}};
    labels_.push_back(std::move(labels));
  }

  int64_t size() const override { return static_cast<int64_t>(data_[0].rows()); }
  const std::vector<FieldSpec>& data_fields() const override { return data_fields_; }
  const std::vector<FieldSpec>& label_fields() const override { return label_fields_; }
  void Read(int64_t index, Sample* sample) const override {
    Fill(data_, data_fields_, index, &sample->data);
    Fill(labels_, label_fields_, index, &sample->labels);
  }
  std::string Name(int64_t index) const override { return format("{}:{}", data_[0].file, data_[0].lines[static_cast<size_t>(index)]); }
  std::optional<int> ClassOf(int64_t index) const override {
    if (class_names_.empty() || label_sets_) return std::nullopt;
    return static_cast<int>(labels_[class_label_].cells[static_cast<size_t>(index)]);
  }
  const std::vector<std::string>& class_names() const override { return class_names_; }

 private:
  static void CheckParam(const CsvParam& param) {
    const bool named = !param.data_fields.empty();
    if (param.path.empty() == param.data_csv.empty()) Throw(ErrorKind::kConfig, "csv needs either 'path' or 'data_csv'");
    if (!param.path.empty() && !param.label_csv.empty())
      Throw(ErrorKind::kConfig, "csv: 'label_csv' goes with 'data_csv', not with 'path'");
    if (param.path.empty() && (!param.label_columns.empty() || named)) {
      Throw(ErrorKind::kConfig, "csv: '{}' goes with 'path'", named ? "data_fields" : "label_columns");
    }
    if (!named && !(param.label_fields.empty() && param.field_shapes.empty())) {
      Throw(ErrorKind::kConfig, "csv: 'label_fields' and 'field_shapes' go with 'data_fields'");
    }
    if (!named && !(param.picture_fields.empty() && param.root.empty() && param.classes.empty() && param.label_delim.empty())) {
      Throw(ErrorKind::kConfig, "csv: 'picture_fields', 'root', 'classes' and 'label_delim' go with 'data_fields'");
    }
    if (named && (!param.label_columns.empty() || param.data_shape.has_rank() || param.label_shape.has_rank())) {
      Throw(ErrorKind::kConfig, "csv: 'data_fields' takes the place of 'label_columns', 'data_shape' and 'label_shape'");
    }
    if (!named && param.label_shape.has_rank() && param.label_csv.empty() && param.label_columns.empty()) {
      Throw(ErrorKind::kConfig, "csv: 'label_shape' is given, but no labels");
    }
  }

  // Whether a column is asked for by a name: the first line then is the header.
  static bool NamesColumns(const CsvParam& param) {
    const auto named = [](const std::string& item) {
      return item.find_first_not_of("0123456789", item.find('=') + 1) != std::string::npos;
    };
    return std::any_of(param.data_fields.begin(), param.data_fields.end(), named) ||
           std::any_of(param.label_fields.begin(), param.label_fields.end(), named);
  }

  void NameFields(const Table& all, const CsvParam& param) {
    const std::vector<NamedField> shapes = GroupByField(param.field_shapes, "field_shapes");
    auto add = [&](const std::vector<NamedField>& fields, bool label, std::vector<Table>* tables, std::vector<FieldSpec>* specs) {
      for (const NamedField& field : fields) {
        std::vector<size_t> columns;
        for (const std::string& name : field.values) columns.push_back(FindColumn(all, name));
        tables->push_back(Select(all, columns));
        specs->push_back(
            {field.name, FieldKind::kValues, ShapeOf(tables->back(), WantedShape(shapes, field.name), field.name.c_str(), label)});
      }
    };
    add(GroupByField(param.data_fields, "data_fields"), false, &data_, &data_fields_);
    add(GroupByField(param.label_fields, "label_fields"), true, &labels_, &label_fields_);
    for (const std::string& name : param.picture_fields) MakePictures(name, param);
    label_sets_ = !param.label_delim.empty();
    label_sets_ ? NumberLabelSets(param) : NumberLabels(param.classes);
    for (size_t i = 0; i < data_.size(); ++i) {
      if (data_fields_[i].kind == FieldKind::kValues) RequireNumbers(data_[i]);
    }
    for (const Table& labels : labels_) RequireNumbers(labels);
  }

  void MakePictures(const std::string& name, const CsvParam& param) {
    const auto field = std::find_if(data_fields_.begin(), data_fields_.end(), [&](const FieldSpec& f) { return f.name == name; });
    if (field == data_fields_.end()) Throw(ErrorKind::kConfig, "csv: picture_fields names '{}', which is none of data_fields", name);
    Table& paths = data_[static_cast<size_t>(field - data_fields_.begin())];
    if (paths.columns != 1) Throw(ErrorKind::kConfig, "csv: the pictures '{}' need one column of paths, not {}", name, paths.columns);
    *field = {name, FieldKind::kPicture, TShape()};
    const std::filesystem::path root =
        param.root.empty() ? std::filesystem::path(paths.file).parent_path() : std::filesystem::path(param.root);
    for (std::string& word : paths.words) word = (root / word).string();
  }

  // The first label whose cells are class names (or any, where the classes are given) becomes their numbers.
  void NumberLabels(const std::vector<std::string>& given) {
    for (size_t i = 0; i < labels_.size() && class_names_.empty(); ++i) {
      Table& table = labels_[i];
      float ignored = 0;
      const auto is_word = [&](const std::string& word) { return !ParseNumber(word, &ignored); };
      const bool words = std::any_of(table.words.begin(), table.words.end(), is_word);
      if (table.words.empty() || table.columns != 1 || (!words && given.empty())) continue;
      ClassLabels classes = NumberClasses(table.words, given, [&](size_t row) { return format("{}:{}", table.file, table.lines[row]); });
      table.cells = std::move(classes.labels);
      table.words.clear();
      class_names_ = std::move(classes.classes);
      class_label_ = i;
    }
  }

  void NumberLabelSets(const CsvParam& param) {
    const auto found = std::find_if(labels_.begin(), labels_.end(), [](const Table& table) { return table.columns == 1; });
    if (found == labels_.end()) Throw(ErrorKind::kConfig, "csv: label_delim = '{}' needs a label of one column", param.label_delim);
    ClassLabels sets = NumberClassSets(found->words, param.label_delim, param.classes,
                                       [&](size_t row) { return format("{}:{}", found->file, found->lines[row]); });
    found->cells = std::move(sets.labels);
    found->columns = sets.classes.size();
    found->words.clear();
    class_names_ = std::move(sets.classes);
    label_fields_[static_cast<size_t>(found - labels_.begin())].shape = TShape{static_cast<int64_t>(found->columns)};
  }

  static void RequireNumbers(const Table& table) {
    float ignored = 0;
    for (size_t i = 0; i < table.words.size(); ++i) {
      if (!ParseNumber(table.words[i], &ignored))
        ThrowNoNumber(table.file, table.lines[i / table.columns], i % table.columns, table.words[i]);
    }
  }

  static TShape WantedShape(const std::vector<NamedField>& shapes, const std::string& name) {
    for (const NamedField& shape : shapes) {
      if (shape.name != name) continue;
      std::string text = shape.values[0];
      std::replace(text.begin(), text.end(), 'x', ',');
      return TShape::Parse(format("({},)", text));
    }
    return {};
  }

  static void Fill(const std::vector<Table>& tables, const std::vector<FieldSpec>& fields, int64_t index, std::vector<FieldValue>* values) {
    values->resize(tables.size());
    for (size_t i = 0; i < tables.size(); ++i) {
      if (fields[i].kind == FieldKind::kPicture) {
        (*values)[i].encoded = ReadImageFile(tables[i].words[static_cast<size_t>(index)]);
        continue;
      }
      (*values)[i].values = {tables[i].cells.data() + static_cast<size_t>(index) * tables[i].columns, tables[i].columns};
    }
  }

  std::vector<Table> data_, labels_;  // one per field
  std::vector<FieldSpec> data_fields_, label_fields_;
  std::vector<std::string> class_names_;  // none where labels are numbers: those alone do not say whether they are classes
  size_t class_label_ = 0;                // which label the classes are of
  bool label_sets_ = false;               // it holds a 0 or 1 for each of them
};

}  // namespace

std::unique_ptr<Source> NewCsvSource(const CsvParam& param) {
  return std::make_unique<CsvSource>(param);
}

}  // namespace mxtrain::io
