// SPDX-License-Identifier: Apache-2.0
#pragma once
// Numbers, classes and image paths in text files, one line per example (table_text.h). The first
// line is a header of column names if a column is requested by name, else if its contents say so
// (header_line.h); which it is taken as is a note, or a warning where the contents leave a doubt.
// Columns that no field names and empty lines are ignored.
//
// What evaluation and inference need to read another table the same way are parameters too: class
// names (Source::found), means and standard deviations (column_statistics.h).
#include <memory>

#include "mxtrain/base/params.h"
#include "mxtrain/io/source.h"

namespace mxtrain::io {

struct CsvParam : Parameter<CsvParam> {
  enum Missing { kError, kMean, kDrop };
  enum Decimal { kAuto, kPoint, kComma };
  std::string path, data_csv, label_csv, root, label_delim, delimiter, key, group;
  std::vector<std::string> label_columns, data_fields, label_fields, field_shapes, picture_fields,
      image_labels, classes, field_classes, field_codes, field_words, field_means, field_stds,
      field_transforms, missing_words;
  int missing, decimal;
  bool weight_optional;
  TShape data_shape, label_shape;
  static void Declare(Fields<CsvParam>& f) {
    f.Add("path", &CsvParam::path).IsPath().Default("").Help("file with data and labels");
    f.Add("root", &CsvParam::root)
        .IsPath()
        .Default("")
        .Help("folder that image paths are relative to; default: the folder of the file");
    f.Add("label_delim", &CsvParam::label_delim)
        .Default("")
        .Help(
            "separator between the classes of a multi-label example, such as ';' in 'cat;dog'; the "
            "label is then 0 or 1 for each class");
    f.Add("picture_fields", &CsvParam::picture_fields)
        .Default({})
        .Internal()
        .Help("with data_fields: those whose one column holds image paths");
    f.Add("image_labels", &CsvParam::image_labels)
        .Default({})
        .Internal()
        .Help("with label_fields: those whose one column holds image paths");
    f.Add("data_fields", &CsvParam::data_fields)
        .Default({})
        .Internal()
        .Help(
            "with path: FIELD=COLUMN for each column of each field of the data, in order: left=a, "
            "left=b, right=c, right=d");
    f.Add("label_fields", &CsvParam::label_fields)
        .Default({})
        .Internal()
        .Help("with data_fields: FIELD=COLUMN for the labels; label_delim is of the first of one");
    f.Add("weight_optional", &CsvParam::weight_optional)
        .Default(false)
        .Internal()
        .Help("with label_fields: a table without the column of the weight has no weights");
    f.Add("field_shapes", &CsvParam::field_shapes)
        .Default({})
        .Internal()
        .Help(
            "with data_fields: FIELD=SHAPE of one example, y=1 or image=1x28x28; default: as "
            "data_shape and label_shape");
    f.Add("delimiter", &CsvParam::delimiter)
        .Default("auto")
        .Help(
            "separator between cells: one character, tab, or blanks (any number of spaces and "
            "tabs); auto: whichever of , ; tab | is most frequent in the first line, blanks if "
            "there is none");
    f.Add("decimal", &CsvParam::decimal)
        .Enum({{"auto", kAuto}, {".", kPoint}, {",", kComma}})
        .Default(kAuto)
        .Help(
            "what decimals are written with: a point, or a comma (3,14 or 1.234,5); auto: a point, "
            "and a column of numbers with commas is an error");
    f.Add("missing", &CsvParam::missing)
        .Enum({{"error", kError}, {"mean", kMean}, {"drop", kDrop}})
        .Default(kError)
        .Help(
            "empty cells (in numeric columns also nan, NA, n/a, null): error: refuse them; mean: "
            "in inputs, use the column's mean over the training set, and skip rows without a "
            "label; drop: skip their rows");
    f.Add("missing_words", &CsvParam::missing_words)
        .Default({})
        .Help(
            "further texts of cells that are missing, such as '?' or '-999', beside empty cells, "
            "nan, NA, n/a and null");
    f.Add("classes", &CsvParam::classes)
        .Default({})
        .Internal()
        .Help(
            "class names of the label of label_delim, or of the first text label, in order of "
            "their numbers; default: the words found, sorted");
    f.Add("field_classes", &CsvParam::field_classes)
        .Default({})
        .Internal()
        .Help(
            "FIELD=CLASS for each class of each text label, in order of their numbers; default: "
            "the words found, sorted");
    f.Add("field_codes", &CsvParam::field_codes)
        .Default({})
        .Internal()
        .Help(
            "FIELD=ROWS for each column of a field of the data: its cells are codes, whole numbers "
            "below ROWS, or words, which get codes from 1 on; 0: they are numbers");
    f.Add("field_words", &CsvParam::field_words)
        .Default({})
        .Internal()
        .Help(
            "FIELD=K=WORD: the words of the field's column K, from 0, in order of their codes; "
            "default: the words found, sorted");
    f.Add("field_means", &CsvParam::field_means)
        .Default({})
        .Internal()
        .Help(
            "FIELD=MEAN for each column of a field, in order: for missing = mean, and with "
            "field_stds");
    f.Add("field_stds", &CsvParam::field_stds)
        .Default({})
        .Internal()
        .Help(
            "FIELD=STD for each column of a field, in order: its numbers become (number - mean) / "
            "std; 0: they stay as they are");
    f.Add("field_transforms", &CsvParam::field_transforms)
        .Default({})
        .Internal()
        .Help(
            "FIELD=TRANSFORM for each column of a field, before field_means and field_stds: log, "
            "quantile with knots FROM TO FROM TO ..., or nothing");
    f.Add("key", &CsvParam::key)
        .Default("")
        .Internal()
        .Help(
            "column that names the rows; #: name them by number, from 1; default: by file and "
            "line");
    f.Add("group", &CsvParam::group)
        .Default("")
        .Internal()
        .Help("column that says which rows belong together (Source::GroupOf)");
    f.Add("label_columns", &CsvParam::label_columns)
        .Default({})
        .Internal()
        .Help("with path: names or numbers (from 0) of the columns that are labels");
    f.Add("data_csv", &CsvParam::data_csv)
        .Default("")
        .Internal()
        .Help("instead of path: the file of the data");
    f.Add("label_csv", &CsvParam::label_csv)
        .Default("")
        .Internal()
        .Help("with data_csv: the file of the labels; none: no labels");
    f.Add("data_shape", &CsvParam::data_shape)
        .Default(TShape())
        .Internal()
        .Help("shape of one example; default: a row of all data columns");
    f.Add("label_shape", &CsvParam::label_shape)
        .Default(TShape())
        .Internal()
        .Help("shape of one label; default: a scalar, or a row of several columns");
  }
};

// Holds all numbers in memory; images are read on demand. A single-column label may be text: class
// names. Fields: those named by data_fields and label_fields (label_fields alone: no data), or one
// "data" of data_shape and one "label" of label_shape. A column of codes (field_codes) may be text:
// its words get the codes 1, 2, ..., an empty cell and a word that field_words lacks 0. A column
// "missing(NAME)", unless the table has one, holds 1 where that column is missing, else 0. With
// label_delim the first single-column label becomes 0 or 1 per class, [classes]. The label
// kExampleWeight is the weight of the example (example_weight.h), one column of numbers from 0.
// With missing = mean and no field_means a missing number is NaN, for measuring. Numbers with more
// digits than float32 holds are standardized in double where that makes a difference; used as they
// are there is a warning. Throws kConfig for contradictory parameters, kFileSystem for a missing
// file, and kData, with file, line and column, for a value that is not a finite number, for lines
// of different lengths, for a width that does not match the shape, and for files of different
// lengths.
MXTRAIN_API std::unique_ptr<Source> NewCsvSource(const CsvParam& param);

}  // namespace mxtrain::io
