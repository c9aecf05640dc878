// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which columns of a table become which fields, by the parameters of a csv source. Private to io.
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/io/example_weight.h"
#include "mxtrain/io/internal/csv_sheet.h"
#include "mxtrain/io/internal/csv_source.h"

namespace mxtrain::io {

// Throws kConfig for parameters that contradict each other.
void CheckCsvParam(const CsvParam& param);
// Whether a column is requested by name: then the first line is the header.
bool NamesColumns(const CsvParam& param);
// Whether fields are named, not "data" and "label".
bool NamesFields(const CsvParam& param);

// What FIELD=VALUE items of `parameter` give to a field: none if they do not name it; as numbers,
// one for each of its columns or none. Throw kConfig.
std::vector<std::string> ValuesOf(const std::vector<std::string>& items, const char* parameter,
                                  const std::string& field);
std::vector<double> NumbersOf(const std::vector<std::string>& items, const char* parameter,
                              const std::string& field, size_t columns);

// What a column of codes holds.
struct CsvCodes {
  int64_t rows = 0;                          // codes are below; 0: the column holds numbers
  std::vector<std::string_view> cells = {};  // one per row, until they are read
  std::vector<std::string> words = {};       // of codes 1, 2, ...; empty: cells are codes
};

// The columns of one field and their contents: numbers, or text if `words`, which are paths of
// images if `image`.
struct CsvField {
  std::string name;
  std::vector<size_t> columns = {};
  bool label = false, words = false, image = false;
  std::vector<std::string_view> cells = {};  // if words: one per row
  size_t width = 0;                          // numbers per row
  std::vector<float> numbers = {};
  std::vector<float> rests = {};  // what float32 took from each number; empty: nothing
  std::vector<std::string> paths = {}, classes = {};
  std::vector<CsvCodes> codes = {};  // by column; empty: all are numbers
  // By column: it holds 1 where the table's column has nothing, else 0; empty: none does.
  std::vector<bool> indicators = {};
  bool Indicates(size_t column) const { return !indicators.empty() && indicators[column]; }
  bool IsWeight() const { return label && name == kExampleWeight; }
  bool HoldsCodes(size_t column) const { return !codes.empty() && codes[column].rows > 0; }
};

struct CsvFields {
  std::vector<CsvField> fields;  // data, then labels, in the order of the specs
  std::vector<FieldSpec> data, labels;

  FieldSpec* SpecOf(const CsvField& field);
  // With the spec of its shape: `wanted` or, of unknown rank, a scalar or a row. Throws kData,
  // naming `parameter`, for a shape of another number of elements than the field has columns.
  void Add(CsvField field, const TShape& wanted, const char* parameter, const std::string& file);
};

// The fields of the columns that the parameters name, or of all columns. Throws kConfig and kData.
CsvFields PlanCsvFields(const CsvParam& param, const Sheet& sheet);

}  // namespace mxtrain::io
