// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/csv_fields.h"

#include <algorithm>

#include "mxtrain/base/error.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/find_table_columns.h"
#include "mxtrain/io/internal/text_columns.h"

namespace mxtrain::io {
namespace {

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

TShape WantedShape(const CsvParam& param, const std::string& name) {
  const std::vector<std::string> given = ValuesOf(param.field_shapes, "field_shapes", name);
  if (given.empty()) return {};
  std::string text = given[0];
  std::replace(text.begin(), text.end(), 'x', ',');
  return TShape::Parse(format("({},)", text));
}

// A field of the named columns. `image`: their one column holds paths.
CsvField NamedColumns(const NamedField& given, bool label, bool image, const Sheet& sheet) {
  CsvField field{.name = given.name, .label = label};
  for (const std::string& column : given.values) {
    const std::string told = IndicatedColumn(column);
    const bool indicates = !told.empty() && std::ranges::count(sheet.header, column) == 0;
    if (indicates && (label || image))
      Throw(ErrorKind::kConfig, "csv: {} is for inputs of numbers, not for '{}'", column,
            given.name);
    field.columns.push_back(sheet.Find(indicates ? told : column));
    field.indicators.push_back(indicates);
  }
  field.width = field.columns.size();
  if (image && field.width != 1) {
    Throw(ErrorKind::kConfig, "csv: the images '{}' need one column of paths, not {}", field.name,
          field.width);
  }
  field.image = image;
  field.words = image || (label && field.width == 1 && !field.IsWeight());
  if (field.IsWeight() && (image || field.width != 1))
    Throw(ErrorKind::kConfig, "csv: the weight of an example is one column of numbers");
  return field;
}

// FIELD=K=WORD
void AddWords(const std::vector<std::string>& items, CsvField* field) {
  for (const std::string& item : items) {
    const size_t equals = item.find('=');
    int64_t column = -1;
    if (equals != std::string::npos) params::Parse(item.substr(0, equals), &column);
    if (column < 0 || column >= std::ssize(field->columns) ||
        !field->HoldsCodes(static_cast<size_t>(column))) {
      Throw(ErrorKind::kConfig,
            "csv: field_words has '{}' for '{}', which has no such column of codes", item,
            field->name);
    }
    field->codes[static_cast<size_t>(column)].words.push_back(item.substr(equals + 1));
  }
}

void AddCodes(const CsvParam& param, CsvField* field) {
  const std::vector<double> rows =
      NumbersOf(param.field_codes, "field_codes", field->name, field->columns.size());
  for (const double count : rows) field->codes.push_back({static_cast<int64_t>(count)});
  AddWords(ValuesOf(param.field_words, "field_words", field->name), field);
}

CsvFields PlanNamedColumns(const CsvParam& param, const Sheet& sheet) {
  CsvFields planned;
  std::vector<std::string> images = param.picture_fields, targets = param.image_labels;
  for (const bool label : {false, true}) {
    const char* parameter = label ? "label_fields" : "data_fields";
    for (const NamedField& given :
         GroupByField(label ? param.label_fields : param.data_fields, parameter)) {
      if (label && param.weight_optional && given.name == kExampleWeight &&
          !sheet.Has(given.values[0]))
        continue;
      const bool image = std::erase(label ? targets : images, given.name) > 0;
      CsvField field = NamedColumns(given, label, image, sheet);
      if (!label && !image) AddCodes(param, &field);
      if (!image) {
        planned.Add(std::move(field), WantedShape(param, given.name), given.name.c_str(),
                    sheet.file);
        continue;
      }
      (label ? planned.labels : planned.data).push_back({field.name, FieldKind::kImage, TShape()});
      planned.fields.push_back(std::move(field));
    }
  }
  if (!images.empty()) {
    Throw(ErrorKind::kConfig, "csv: picture_fields names '{}', which is not in data_fields",
          images[0]);
  }
  if (!targets.empty()) {
    Throw(ErrorKind::kConfig, "csv: image_labels names '{}', which is not in label_fields",
          targets[0]);
  }
  return planned;
}

CsvFields PlanAllColumns(const CsvParam& param, const Sheet& sheet) {
  CsvField data{.name = "data"}, label{.name = "label", .label = true};
  for (const std::string& name : param.label_columns) {
    label.columns.push_back(sheet.Find(name));
    if (std::count(label.columns.begin(), label.columns.end(), label.columns.back()) > 1)
      Throw(ErrorKind::kConfig, "csv: label_columns names '{}' twice", name);
  }
  if (label.columns.size() == sheet.columns)
    Throw(ErrorKind::kConfig, "csv: {} has only label columns, no data", sheet.file);
  for (size_t column = 0; column < sheet.columns; ++column) {
    if (std::count(label.columns.begin(), label.columns.end(), column) == 0)
      data.columns.push_back(column);
  }
  CsvFields planned;
  for (CsvField* field : {&data, &label}) {
    field->width = field->columns.size();
    if (field->width == 0) continue;
    const TShape& shape = field->label ? param.label_shape : param.data_shape;
    const char* parameter = field->label ? "label_shape" : "data_shape";
    planned.Add(std::move(*field), shape, parameter, sheet.file);
  }
  return planned;
}

void CheckLabelDelim(const CsvParam& param, const std::vector<CsvField>& fields) {
  const auto is_label = [](const CsvField& field) { return field.label; };
  const auto is_one = [](const CsvField& field) {
    return field.label && field.width == 1 && !field.image && !field.IsWeight();
  };
  if (!param.label_delim.empty() && std::ranges::any_of(fields, is_label) &&
      std::ranges::none_of(fields, is_one)) {
    Throw(ErrorKind::kConfig, "csv: label_delim = '{}' needs a label of one column",
          param.label_delim);
  }
}

}  // namespace

bool NamesFields(const CsvParam& param) {
  return !param.data_fields.empty() || !param.label_fields.empty();
}

void CheckCsvParam(const CsvParam& param) {
  const bool named = NamesFields(param);
  if (param.path.empty() == param.data_csv.empty())
    Throw(ErrorKind::kConfig, "csv needs either 'path' or 'data_csv'");
  if (!param.path.empty() && !param.label_csv.empty())
    Throw(ErrorKind::kConfig, "csv: 'label_csv' goes with 'data_csv', not with 'path'");
  if (param.path.empty() && (!param.label_columns.empty() || named)) {
    Throw(ErrorKind::kConfig, "csv: '{}' goes with 'path'",
          named ? "data_fields" : "label_columns");
  }
  if (!named && !param.field_shapes.empty())
    Throw(ErrorKind::kConfig, "csv: 'field_shapes' go with 'data_fields'");
  if (!named && !(param.picture_fields.empty() && param.root.empty() && param.classes.empty() &&
                  param.label_delim.empty())) {
    Throw(ErrorKind::kConfig,
          "csv: 'picture_fields', 'root', 'classes' and 'label_delim' go with 'data_fields'");
  }
  if (named && (!param.label_columns.empty() || param.data_shape.has_rank() ||
                param.label_shape.has_rank())) {
    Throw(ErrorKind::kConfig,
          "csv: 'data_fields' takes the place of 'label_columns', 'data_shape' and 'label_shape'");
  }
  if (!named && param.label_shape.has_rank() && param.label_csv.empty() &&
      param.label_columns.empty()) {
    Throw(ErrorKind::kConfig, "csv: 'label_shape' is given, but no labels");
  }
}

bool NamesColumns(const CsvParam& param) {
  const auto is_name = [](const std::string& item) {
    const size_t equals = item.find('=');  // before the first character, if there is none
    return item.find_first_not_of("0123456789", equals + 1) != std::string::npos;
  };
  return std::any_of(param.data_fields.begin(), param.data_fields.end(), is_name) ||
         std::any_of(param.label_fields.begin(), param.label_fields.end(), is_name) ||
         std::any_of(param.label_columns.begin(), param.label_columns.end(), is_name);
}

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

FieldSpec* CsvFields::SpecOf(const CsvField& field) {
  std::vector<FieldSpec>& specs = field.label ? labels : data;
  return &*std::ranges::find(specs, field.name, &FieldSpec::name);
}

void CsvFields::Add(CsvField field, const TShape& wanted, const char* parameter,
                    const std::string& file) {
  const auto columns = static_cast<int64_t>(field.width);
  TShape shape = wanted;
  if (!wanted.has_rank())
    shape = field.label && columns == 1 ? TShape(std::span<const int64_t>{}) : TShape{columns};
  if (!shape.known() || shape.Size() != columns) {
    Throw(ErrorKind::kData, "csv: {} = {} needs {}, {} has {}", parameter, wanted.ToString(),
          Counted(wanted.known() ? wanted.Size() : -1, "column"), file, columns);
  }
  (field.label ? labels : data).push_back({field.name, FieldKind::kValues, shape});
  fields.push_back(std::move(field));
}

CsvFields PlanCsvFields(const CsvParam& param, const Sheet& sheet) {
  if (!NamesFields(param)) return PlanAllColumns(param, sheet);
  CsvFields planned = PlanNamedColumns(param, sheet);
  CheckLabelDelim(param, planned.fields);
  return planned;
}

}  // namespace mxtrain::io
