#pragma once
// Numbers, classes and paths of pictures in text files, a line per example (table_text.h). A first line that holds no number in its first cell
// is a header of column names; where there are pictures, it is one when a column is asked for by name. Columns that no field names are passed
// over, whatever they hold. Empty lines are passed over.
//
// What another table needs to be read alike, as evaluation and inference do, are parameters too: class names (Source::found), means and standard
// deviations (column_statistics.h).
#include <memory>

#include "mxtrain/base/params.h"
#include "mxtrain/io/source.h"

namespace mxtrain::io {

struct CsvParam : Parameter<CsvParam> {
  enum Missing { kError, kMean, kDrop };
  std::string path, data_csv, label_csv, root, label_delim, delimiter, key;
  std::vector<std::string> label_columns, data_fields, label_fields, field_shapes, picture_fields, classes, field_classes, field_means, field_stds;
  int missing;
  TShape data_shape, label_shape;
  static void Declare(Fields<CsvParam>& f) {
    f.Add("path", &CsvParam::path).Default("").Help("one file that holds data and labels");
    f.Add("label_columns", &CsvParam::label_columns)
        .Default({})
        .Help("with path: names or numbers (from 0) of the columns that are labels");
    f.Add("data_csv", &CsvParam::data_csv).Default("").Help("instead of path: the file of the data");
    f.Add("label_csv", &CsvParam::label_csv).Default("").Help("with data_csv: the file of the labels; none: no labels");
    f.Add("data_fields", &CsvParam::data_fields)
        .Default({})
        .Help("with path: FIELD=COLUMN for each column of each field of the data, in order: left=a, left=b, right=c, right=d");
    f.Add("label_fields", &CsvParam::label_fields).Default({}).Help("with data_fields: FIELD=COLUMN for the labels");
    f.Add("field_shapes", &CsvParam::field_shapes)
        .Default({})
        .Help("with data_fields: FIELD=SHAPE of one example, y=1 or image=1x28x28; default: as data_shape and label_shape");
    f.Add("picture_fields", &CsvParam::picture_fields).Default({}).Help("with data_fields: those whose one column holds paths of pictures");
    f.Add("root", &CsvParam::root).Default("").Help("folder to which the paths are relative; default: that of the file");
    f.Add("label_delim", &CsvParam::label_delim)
        .Default("")
        .Help("with data_fields: what parts the classes in the first label of one column, which names any number of them: ';' in cat;dog");
    f.Add("classes", &CsvParam::classes)
        .Default({})
        .Help("class names of the label of label_delim, or of the first label of words, in order of their numbers; default: the words found, sorted");
    f.Add("field_classes", &CsvParam::field_classes)
        .Default({})
        .Help("FIELD=CLASS for each class of each label of words, in order of their numbers; default: the words found, sorted");
    f.Add("delimiter", &CsvParam::delimiter)
        .Default("auto")
        .Help("what parts the cells: one character, or tab; auto: that of , ; tab | which the first line holds most often");
    f.Add("missing", &CsvParam::missing)
        .Enum({{"error", kError}, {"mean", kMean}, {"drop", kDrop}})
        .Default(kError)
        .Help("what becomes of empty cells (of numbers also nan, NA, n/a, null): error; mean: of data the column's mean, rows without a label are passed "
              "over; drop: their rows are passed over");
    f.Add("field_means", &CsvParam::field_means)
        .Default({})
        .Help("FIELD=MEAN for each column of a field, in order: for missing = mean, and of what has field_stds");
    f.Add("field_stds", &CsvParam::field_stds)
        .Default({})
        .Help("FIELD=STD for each column of a field, in order: its numbers are given as (number - mean) / std");
    f.Add("key", &CsvParam::key)
        .Default("")
        .Help("the column that names the rows; #: they are called by their numbers, from 1; default: by file and line");
    f.Add("data_shape", &CsvParam::data_shape).Default(TShape()).Help("of one example; default: a row of all data columns");
    f.Add("label_shape", &CsvParam::label_shape).Default(TShape()).Help("of one label; default: a scalar, or a row of several columns");
  }
};

// Holds all numbers in memory; pictures are read when asked for. A label of one column may be words: the names of classes. Fields: those
// that data_fields and label_fields name (label_fields alone: no data), or one "data" of data_shape and one "label" of label_shape. With label_delim
// the first label of one column becomes a 0 or 1 for each class, [classes]. With missing = mean and without field_means a missing number is
// NaN, for who measures. Throws kConfig for parameters that contradict, kFileSystem for a missing file, and kData, with file, line and column,
// for what is no finite number, for lines of different lengths, for a width that the shape does not fit, and for files of different lengths.
MXTRAIN_API std::unique_ptr<Source> NewCsvSource(const CsvParam& param);

}  // namespace mxtrain::io
